"""Random small clusters with what is held in them and the claims of one pod, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]

DRIVER: Final = "gcu.enflame.com"
OURS: Final = (f"{DRIVER}/allocated-by", "controller")
MODES: Final = ("whole", "shared", "drs")
CLASS_OF: Final = {
    f"{DRIVER}": "whole",
    f"shared-{DRIVER}": "shared",
    f"drs-{DRIVER}": "drs",
    "any.example.com": "",
}
_MODEL = f'device.attributes["{DRIVER}"].model'
SELECTED: Final[dict[str, Callable[[Object], bool]]] = {
    f'{_MODEL} == "S60"': lambda device: device["attributes"]["model"]["string"] == "S60",
    "device.allowMultipleAllocations": lambda device: bool(
        device.get("allowMultipleAllocations", False)
    ),
}
_POLICIES: Final[tuple[Object, ...]] = (
    {"default": "1", "validRange": {"min": "1", "max": "3", "step": "1"}},
    {"default": "1", "validRange": {"min": "1", "max": "3", "step": "2"}},
    {"default": "2", "validRange": {"min": "2", "max": "3"}},
    {"default": "1", "validValues": ["1", "3"]},
    {"default": "1"},
    {},
)


@dataclass(frozen=True)
class Scenario:
    nodes: tuple[str, ...]
    slices: list[Object]
    held: list[Object]
    wanted: list[Object]


def classes() -> dict[str, Object]:
    """The DeviceClasses that the claims name."""
    found = {}
    for name, kind in CLASS_OF.items():
        expression = f'device.driver == "{DRIVER}"'
        if kind:
            expression += f' && device.attributes["{DRIVER}"].type == "{kind}"'
        selectors = [{"cel": {"expression": expression}}]
        found[name] = {"metadata": {"name": name}, "spec": {"selectors": selectors}}
    return found


def scenario(seed: int) -> Scenario:
    return _Writer(random.Random(seed)).scenario()


class _Writer:
    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._counted = draw.random() < 0.1

    def scenario(self) -> Scenario:
        nodes = ("a", "b") if self._chance(0.2) else ("a",)
        devices = {node: self._devices() for node in nodes}
        slices = [each for node in nodes for each in self._slices(node, devices[node])]
        held = [
            self._held(number, node, devices[node])
            for node in nodes
            for number in range(self._draw.choice((0, 0, 1, 1, 2)))
        ]
        wanted = [self._claim(number) for number in range(self._draw.choice((1, 1, 2)))]
        return Scenario(nodes, slices, held, wanted)

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _devices(self) -> list[Object]:
        devices: list[Object] = []
        for bus in range(self._draw.choice((1, 1, 2, 2, 3))):
            modes = self._draw.sample(MODES, self._draw.choice((1, 2, 2, 3)))
            model = self._draw.choice(("S60", "S60", "T20"))
            places = self._places()
            devices += [self._device(mode, bus, model, places) for mode in sorted(modes)]
        return devices

    def _places(self) -> Object:
        places: Object = {}
        if self._chance(0.8):
            places["pcieSwitch"] = {"string": self._draw.choice("pq")}
        if self._chance(0.5):
            lists = ({"int": 0}, {"int": 1}, {"ints": [0, 1]}, {"ints": [1, 2]}, {"string": "0"})
            places["zone"] = self._draw.choice(lists)
        return places

    def _device(self, mode: str, bus: int, model: str, places: Object) -> Object:
        device: Object = {
            "name": f"{mode}-0000-{bus:02x}-00-0",
            "attributes": {"type": {"string": mode}, "model": {"string": model}, **places},
        }
        if self._chance(0.85):
            device["attributes"]["card"] = {"string": f"0000:{bus:02x}:00.0"}
        if mode != "whole":
            device["allowMultipleAllocations"] = True
        if mode != "whole" or self._chance(0.3):
            device["capacity"] = {
                name: self._capacity() for name in self._draw.sample(("n", "m"), self._few(1, 2))
            }
        if self._counted and self._chance(0.8):
            device["consumesCounters"] = [{"counterSet": "s", "counters": {"k": {"value": "1"}}}]
        device["taints"] = self._taints()
        return device

    def _few(self, usual: int, most: int) -> int:
        return usual if self._chance(0.7) else most

    def _capacity(self) -> Object:
        policy = self._draw.choice(_POLICIES)
        value = self._draw.choice(("3", "3", "4"))
        return {"value": value, "requestPolicy": policy} if policy else {"value": value}

    def _taints(self) -> list[Object]:
        taints: list[Object] = [{"key": OURS[0], "value": OURS[1], "effect": "NoSchedule"}]
        if self._chance(0.1):
            effect = self._draw.choice(("NoSchedule", "NoExecute", "None"))
            taints.append({"key": "x", "value": self._draw.choice("vw"), "effect": effect})
        return taints

    def _slices(self, node: str, devices: list[Object]) -> list[Object]:
        parts: list[Object] = [{"devices": devices}]
        if self._counted:
            parts.append({"sharedCounters": [{"name": "s", "counters": {"k": {"value": "9"}}}]})
        pool = {"name": f"{DRIVER}/{node}", "generation": 1, "resourceSliceCount": len(parts)}
        return [
            {
                "metadata": {"name": f"{node}-{number}", "resourceVersion": "1"},
                "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **part},
            }
            for number, part in enumerate(parts)
        ]

    def _held(self, number: int, node: str, devices: list[Object]) -> Object:
        device = self._draw.choice(devices)
        name = device["name"]
        if self._chance(0.1):  # one that vanished
            name = f"{self._draw.choice(MODES)}-0000-{self._few(0, 1):02x}-00-0"
        result: Object = {
            "request": "r",
            "driver": DRIVER,
            "pool": f"{DRIVER}/{node}",
            "device": name,
        }
        if device.get("allowMultipleAllocations") and self._chance(0.9):
            result["shareID"] = f"share-{node}-{number}"
            if self._chance(0.9):
                amounts = {each: self._draw.choice("112") for each in device["capacity"]}
                result["consumedCapacity"] = amounts
        if self._chance(0.05):
            result["adminAccess"] = True
        claim = self._named(f"held-{node}-{number}", {})
        return claim | {"status": {"allocation": {"devices": {"results": [result]}}}}

    def _named(self, name: str, devices: Object) -> Object:
        metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
        return {"metadata": metadata, "spec": {"devices": devices}}

    def _claim(self, number: int) -> Object:
        requests = [self._request(f"r{each}") for each in range(self._few(1, 2))]
        devices: Object = {"requests": requests}
        if self._chance(0.4):
            devices["constraints"] = [self._constraint(requests) for _ in range(self._few(1, 2))]
        return self._named(f"c{number}", devices)

    def _request(self, name: str) -> Object:
        if self._chance(0.8):
            exactly = self._exactly()
            if self._chance(0.1):
                exactly["adminAccess"] = True
            return {"name": name, "exactly": exactly}
        subs = [{"name": f"s{each}", **self._exactly()} for each in range(2)]
        return {"name": name, "firstAvailable": subs}

    def _exactly(self) -> Object:
        exactly: Object = {"deviceClassName": self._draw.choice(tuple(CLASS_OF))}
        if self._chance(0.15):
            exactly["allocationMode"] = "All"
        else:
            exactly |= {"allocationMode": "ExactCount", "count": self._few(1, 2)}
        if self._chance(0.2):
            expressions = self._draw.sample(tuple(SELECTED), 1)
            exactly["selectors"] = [{"cel": {"expression": each}} for each in expressions]
        if self._chance(0.4):
            asked = self._draw.sample(("n", "m"), self._few(1, 2))
            exactly["capacity"] = {"requests": {each: self._draw.choice("1234") for each in asked}}
        if self._chance(0.1):
            exactly["tolerations"] = [self._toleration()]
        return exactly

    def _toleration(self) -> Object:
        return self._draw.choice(
            (
                {"operator": "Exists"},
                {"key": "x", "operator": "Exists"},
                {"key": "x", "operator": "Equal", "value": "v"},
                {"key": "x", "operator": "Exists", "effect": "NoExecute"},
                {"key": "y", "operator": "Exists"},
            )
        )

    def _constraint(self, requests: list[Object]) -> Object:
        attribute = self._draw.choice(("pcieSwitch", "zone", "card", "type"))
        kind = self._draw.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        constraint: Object = {kind: f"{DRIVER}/{attribute}"}
        if self._chance(0.4):
            named = [each["name"] for each in requests]
            named += [
                f"{each['name']}/{sub['name']}"
                for each in requests
                for sub in each.get("firstAvailable", ())
            ]
            constraint["requests"] = self._draw.sample(named, self._few(1, min(2, len(named))))
        return constraint
