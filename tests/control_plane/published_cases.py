"""Random nodes as agents publish them for kube-scheduler, what is held there, and the claims of a
pod, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dra_driver.agent.slices.device_layout import with_layouts_in_use
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import counter_sets, parse_device_name
from dra_driver.model.names import (
    CLASS_ADMIN,
    CLASS_DRS,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
    TAINT_ADMINISTRATORS,
)
from dra_driver.model.pci import PciAddress
from tests.control_plane.interfaces import (
    CPU,
    NET,
    PCIE_ROOT,
    RDMA,
    interface,
    other_slice,
    processor,
    root_of,
    with_device,
)
from tests.unit.controller.allocator.build import ANY, claim, device, resource_slice

NODE: Final = "a"
_MODES: Final = ("whole", "shared", "drs")
_CAPACITY_MODES: Final = ("shared", "drs")
_CAPACITY_OF: Final = {CLASS_SHARED: "slices", CLASS_DRS: "size"}
_SELECTORS: Final = (
    f'device.attributes["{DRIVER}"].model == "S60"',
    f'device.attributes["{DRIVER}"].card < "0000:02:00.0"',
    "device.allowMultipleAllocations",
)
_ATTRIBUTES: Final = (
    f"{DRIVER}/pcieSwitch",
    "resource.kubernetes.io/numaNode",
    f"{DRIVER}/model",
    f"{DRIVER}/type",
    f"{DRIVER}/card",
)
_TOLERATIONS: Final[Sequence[Object]] = (
    {"operator": "Exists"},
    {"key": "x", "operator": "Exists"},
    {"key": "x", "operator": "Equal", "value": "v"},
    {"key": "x", "operator": "Exists", "effect": "NoExecute"},
    {"key": "y", "operator": "Exists"},
    {"key": TAINT_ADMINISTRATORS, "operator": "Exists"},
)


_BANDWIDTH: Final[Sequence[Object]] = (
    {"value": "10"},
    {"value": "10", "requestPolicy": {"default": "2", "validValues": ["2", "4", "8"]}},
    {"value": "10", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "2"}}},
)


@dataclass(frozen=True, slots=True)
class Case:
    """`slices` are those of `NODE`."""

    slices: Sequence[Object]
    held: Sequence[Object]
    claims: Sequence[Object]


def case(seed: int) -> Case:
    """The case of that seed."""
    return _Writer(random.Random(seed)).case()


def case_beside(seed: int) -> Case:
    """The case of that seed, with devices of two other drivers, for which claims ask, too."""
    return _WriterBeside(random.Random(seed)).case()


class _Writer:
    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def case(self) -> Case:
        buses = sorted(self._draw.sample(range(12), self._draw.randint(1, 8)))
        cards = {bus: self._card(bus) for bus in buses}
        held = [each for bus in buses if self._chance(0.3) for each in self._held(cards[bus])]
        claims = [self._claim(f"c{nth}") for nth in range(self._few(1, 3))]
        return Case(self._slices(cards.values()), held, claims)

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _few(self, usual: int, most: int) -> int:
        return usual if self._chance(0.6) else self._draw.randint(usual, most)

    def _card(self, bus: int) -> list[Object]:
        modes = _MODES if self._chance(0.7) else self._draw.sample(_MODES, self._few(1, 2))
        switch = f"0000:{bus // 2:02x}:1f.0" if self._chance(0.9) else ""
        model, slices = self._draw.choice((("S60", 6), ("S60", 6), ("T20", 4)))
        taints = [self._taint()] if self._chance(0.1) else []
        devices = [device(mode, bus, switch=switch, numa=bus // 4, slices=slices) for mode in modes]
        for each in devices:
            _, address = parse_device_name(each["name"])
            counters = {"counterSet": address.slug, "counters": {"card": {"value": "1"}}}
            each |= {"taints": taints, "consumesCounters": [counters]}
            each["attributes"]["model"] = {"string": model}
        if "whole" in modes:
            admin = device("admin", bus, switch=switch, numa=bus // 4)
            admin["taints"] = [{"key": TAINT_ADMINISTRATORS, "effect": "NoSchedule"}, *taints]
            admin["attributes"]["model"] = {"string": model}
            devices.append(admin)
        return devices

    def _taint(self) -> Object:
        effect = self._draw.choice(("NoSchedule", "NoExecute", "None"))
        return {"key": "x", "value": self._draw.choice("vw"), "effect": effect}

    def _slices(self, cards: Iterable[list[Object]]) -> list[Object]:
        by_address = {_address(devices): devices for devices in cards}
        devices = with_layouts_in_use(by_address, (), frozenset())
        if self._chance(0.3):
            self._draw.shuffle(devices)
        size = self._draw.choice((3, 8, 64))
        sets = counter_sets(devices)
        parts: list[tuple[list[Object], Object]]
        parts = [(devices[at : at + size], {}) for at in range(0, len(devices), size)]
        parts += [([], {"sharedCounters": sets[at : at + 8]}) for at in range(0, len(sets), 8)]
        return [
            resource_slice(NODE, listed, index=index, count=len(parts), **more)
            for index, (listed, more) in enumerate(parts)
        ]

    def _held(self, devices: Sequence[Object]) -> list[Object]:
        """Claims of one device of the card; some are for administrators."""
        held = self._draw.choice(devices)
        kind = held["attributes"]["type"]["string"]
        shares = ["1", "1", "3"] if kind in _CAPACITY_MODES else []
        if not shares:
            share = 0.9 if kind == "admin" else 0.2
            more = {"adminAccess": True} if self._chance(share) else {}
            return [self._allocated(held, more)]
        [capacity] = held["capacity"]
        return [
            self._allocated(held, {"shareID": f"{number}", "consumedCapacity": {capacity: amount}})
            for number, amount in enumerate(shares[: self._draw.randint(1, 3)])
        ]

    def _allocated(self, held: Object, more: Object) -> Object:
        share = more.get("shareID", "")
        if share:
            more = more | {"shareID": f"{held['name']}-{share}"}
        result = {"driver": DRIVER, "pool": f"{DRIVER}/{NODE}", "device": held["name"]} | more
        found = claim(f"held-{held['name']}-{share}")
        allocation = {"devices": {"results": [{"request": "gcu", **result}]}}
        return found | {"status": {"allocation": allocation}}

    def _claim(self, name: str) -> Object:
        requests = [self._request(f"r{nth}") for nth in range(self._few(1, 3))]
        constraints = []
        if self._chance(0.4):
            constraints = [self._constraint(requests) for _ in range(self._few(1, 2))]
        return claim(name, requests, constraints=constraints)

    def _request(self, name: str) -> Object:
        if self._chance(0.75):
            exactly = self._exactly()
            if self._chance(0.05):
                exactly["adminAccess"] = True
            if self._chance(0.08):
                self._for_administrators(exactly)
            return {"name": name, "exactly": exactly}
        subs = [{"name": f"s{nth}", **self._exactly()} for nth in range(self._few(2, 3))]
        if self._chance(0.1) and "count" in subs[0]:
            subs[0]["count"] = self._draw.choice((20, 33))
        return {"name": name, "firstAvailable": subs}

    def _exactly(self) -> Object:
        cls = self._draw.choice(
            (CLASS_WHOLE, CLASS_WHOLE, CLASS_SHARED, CLASS_DRS, CLASS_PART, ANY)
        )
        exactly: Object = {"deviceClassName": cls}
        if self._chance(0.1):
            exactly["allocationMode"] = "All"
        else:
            exactly |= {"allocationMode": "ExactCount", "count": self._few(1, 4)}
        if self._chance(0.15):
            expression = self._draw.choice(_SELECTORS)
            exactly["selectors"] = [{"cel": {"expression": expression}}]
        capacity = _CAPACITY_OF.get(cls, self._draw.choice(("slices", "size")))
        if self._chance(0.6 if cls in _CAPACITY_OF else 0.05):
            exactly["capacity"] = {"requests": {capacity: self._draw.choice("1123456")}}
        if self._chance(0.1):
            exactly["tolerations"] = [self._draw.choice(_TOLERATIONS)]
        return exactly

    def _for_administrators(self, exactly: Object) -> None:
        """As the webhook writes it, and with a mistake now and then."""
        exactly.pop("capacity", None)
        exactly |= {"deviceClassName": CLASS_ADMIN, "tolerations": [_TOLERATIONS[-1]]}
        if self._chance(0.8):
            exactly["adminAccess"] = True

    def _constraint(self, requests: Sequence[Object]) -> Object:
        kind = self._draw.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        constraint: Object = {kind: self._draw.choice(_ATTRIBUTES)}
        if self._chance(0.4):
            named = [each["name"] for each in requests] + [
                f"{each['name']}/{sub['name']}"
                for each in requests
                for sub in each.get("firstAvailable", ())
            ]
            constraint["requests"] = self._draw.sample(named, min(2, len(named)))
        return constraint


class _WriterBeside(_Writer):
    def case(self) -> Case:
        base = super().case()
        slices, held = list(base.slices), list(base.held)
        for driver in (NET, CPU):
            for pool in range(self._few(1, 2)):
                devices = self._devices(driver)
                slices += self._slices_of(driver, f"pool-{pool}", devices)
                held += [
                    each
                    for device in devices
                    if self._chance(0.3)
                    for each in self._held_of(driver, f"pool-{pool}", device)
                ]
        return Case(slices, held, base.claims)

    def _card(self, bus: int) -> list[Object]:
        devices = super()._card(bus)
        for each in devices:
            each["attributes"][PCIE_ROOT] = {"string": root_of(bus)}
        return devices

    def _devices(self, driver: str) -> list[Object]:
        if driver == CPU:
            return [processor(40 * number) for number in range(self._draw.randint(1, 4))]
        buses = sorted(self._draw.sample(range(12), self._draw.randint(1, 8)))
        return [interface(bus, **self._more()) for bus in buses]

    def _more(self) -> Object:
        more: Object = {}
        if self._chance(0.1):
            more["taints"] = [self._taint()]
        if self._chance(0.3):
            more["capacity"] = {"bandwidth": self._draw.choice(_BANDWIDTH)}
            more["allowMultipleAllocations"] = self._chance(0.8)
        return more

    def _slices_of(self, driver: str, pool: str, devices: list[Object]) -> list[Object]:
        if self._chance(0.2):
            conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
            devices[-1] |= conditions
        if self._chance(0.3):
            self._draw.shuffle(devices)
        size = self._draw.choice((2, 8))
        parts = [devices[at : at + size] for at in range(0, len(devices), size)]
        slices = []
        for index, part in enumerate(parts):
            made = other_slice(NODE, part, driver, count=len(parts))
            made["metadata"]["name"] += f"-{pool}-{index}"
            made["spec"]["pool"]["name"] = pool
            slices.append(made)
        return slices

    def _held_of(self, driver: str, pool: str, device: Object) -> list[Object]:
        found = claim(f"held-{driver}-{pool}-{device['name']}")
        more: Object = {}
        if device.get("allowMultipleAllocations"):
            more = {"shareID": found["metadata"]["uid"], "consumedCapacity": {"bandwidth": "4"}}
        return [with_device(found, pool, device["name"], driver=driver, **more)]

    def _request(self, name: str) -> Object:
        if self._chance(0.5):
            return super()._request(name)
        if self._chance(0.8):
            return {"name": name, "exactly": self._exactly_of_others()}
        subs = [{"name": f"s{nth}", **self._exactly_of_others()} for nth in range(2)]
        return {"name": name, "firstAvailable": subs}

    def _exactly_of_others(self) -> Object:
        driver = self._draw.choice((NET, NET, CPU))
        exactly: Object = {"deviceClassName": driver}
        if self._chance(0.1):
            exactly["allocationMode"] = "All"
        else:
            exactly |= {"allocationMode": "ExactCount", "count": self._few(1, 3)}
        if driver == NET and self._chance(0.3):
            exactly["selectors"] = [{"cel": {"expression": RDMA}}]
        if driver == NET and self._chance(0.3):
            exactly["capacity"] = {"requests": {"bandwidth": self._draw.choice("1358")}}
        if self._chance(0.2):
            exactly["tolerations"] = [self._draw.choice(_TOLERATIONS)]
        return exactly

    def _constraint(self, requests: Sequence[Object]) -> Object:
        constraint = super()._constraint(requests)
        [kind] = constraint.keys() - {"requests"}
        if self._chance(0.7):
            constraint[kind] = self._draw.choice((PCIE_ROOT, f"{NET}/numaNode", f"{NET}/ifName"))
        return constraint


def _address(devices: Sequence[Object]) -> PciAddress:
    _, address = parse_device_name(devices[0]["name"])
    return address
