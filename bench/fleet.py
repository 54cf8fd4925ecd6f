"""A cluster of made-up nodes, as the API server would list it: 8 cards a node, 3 devices a card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final

from dra_driver.agent.slices.device_layout import with_layouts_in_use
from dra_driver.model.devices.device import counter_sets, parse_device_name
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress

Object = dict[str, Any]

CARDS: Final = 8
MODES: Final = ("whole", "shared", "drs")
CLASS: Final = {"whole": DRIVER, "shared": f"shared-{DRIVER}", "drs": f"drs-{DRIVER}"}
SLICES: Final = 6
NUMA: Final = "resource.kubernetes.io/numaNode"
_CAPACITY: Final[dict[str, Object]] = {
    "whole": {"memory": {"value": "42976Mi"}},
    "shared": {
        "slices": {
            "value": str(SLICES),
            "requestPolicy": {
                "default": "1",
                "validRange": {"min": "1", "max": str(SLICES), "step": "1"},
            },
        }
    },
    "drs": {
        "size": {
            "value": "6",
            "requestPolicy": {"default": "1", "validValues": ["1", "3", "6"]},
        }
    },
}
_numbers = count()


def classes() -> dict[str, Object]:
    """The DeviceClasses of the chart."""
    found = {}
    for mode, name in CLASS.items():
        expression = (
            f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "{mode}"'
        )
        selectors = [{"cel": {"expression": expression}}]
        found[name] = {"metadata": {"name": name}, "spec": {"selectors": selectors}}
    return found


def node_name(number: int) -> str:
    return f"node-{number:05}"


@lru_cache(64)
def device_name(mode: str, card: int) -> str:
    return f"{mode}-0000-{_bus(card)}-00-0"


def resource_slice(
    number: int,
    cards: int = CARDS,
    *,
    models: Sequence[str] = ("S60",) * CARDS,
    switches: Sequence[int] = (0, 0, 1, 1, 2, 2, 3, 3),
) -> Object:
    """A node's pool; each card's model, and the PCIe switch that it is behind: two switches
    each are behind another, on a NUMA node."""
    node = node_name(number)
    return {
        "metadata": {"name": f"{node}-0", "resourceVersion": "1", "uid": f"slice-{number}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": f"{DRIVER}/{node}", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                _device(mode, number, card, models[card], switches[card])
                for card in range(cards)
                for mode in MODES
            ],
        },
    }


def for_scheduler(made: Object) -> list[Object]:
    """A node's pool as it is published where kube-scheduler allocates."""
    by_card: dict[PciAddress, list[Object]] = defaultdict(list)
    for device in made["spec"]["devices"]:
        _, address = parse_device_name(device["name"])
        counters = {"counterSet": address.slug, "counters": {"card": {"value": "1"}}}
        by_card[address].append(device | {"taints": [], "consumesCounters": [counters]})
    devices = with_layouts_in_use(by_card, (), frozenset())
    pool = made["spec"]["pool"] | {"resourceSliceCount": 2}
    return [
        {
            "metadata": made["metadata"]
            | {key: f"{made['metadata'][key]}-{part}" for key in ("name", "uid")},
            "spec": made["spec"] | {"pool": pool, "devices": [], part: content},
        }
        for part, content in (("devices", devices), ("sharedCounters", counter_sets(devices)))
    ]


def claim(requests: list[Object], constraints: list[Object] | None = None) -> Object:
    """A claim of a name of its own."""
    name = f"claim-{next(_numbers)}"
    devices: Object = {"requests": requests}
    if constraints:
        devices["constraints"] = constraints
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"devices": devices}}


def request(mode: str, amount: int = 1, *, cards: int = 1) -> Object:
    """`amount` slices, or an instance of that size; of whole cards only `cards` counts."""
    exactly: Object = {
        "deviceClassName": CLASS[mode],
        "allocationMode": "ExactCount",
        "count": cards,
    }
    if mode != "whole":
        name = "slices" if mode == "shared" else "size"
        exactly["capacity"] = {"requests": {name: str(amount)}}
    return {"name": "gcu", "exactly": exactly}


def results(node: int, card: int, mode: str, amount: int) -> Iterator[Object]:
    """What the allocation of one card of the node says."""
    pool = f"{DRIVER}/{node_name(node)}"
    found: Object = {
        "request": "gcu",
        "driver": DRIVER,
        "pool": pool,
        "device": device_name(mode, card),
    }
    if mode != "whole":
        name = "slices" if mode == "shared" else "size"
        share = f"share-{next(_numbers)}"
        found |= {"shareID": share, "consumedCapacity": {name: str(amount)}}
    yield found


def _bus(card: int) -> str:
    return f"{0x0D + card * 8:02x}"


@lru_cache(64)
def _bridges(card: int, switch: int) -> str:
    nearest = f"{_bus(switch * 2)}:1f.0"
    return f"{switch // 2:02x}:01.0/01:00.0/02:0{switch}.0/{nearest}/{_bus(card)}:1e.0"


# One object for equal values: fleets of thousands of nodes are made of them.
@lru_cache(1024)
def _value(kind: str, value: str | int) -> Object:
    return {kind: value}


@lru_cache(4096)
def _taints(node: int) -> list[Object]:
    """The API server sets the time when the node's slice was made."""
    minutes, seconds = divmod(node, 60)
    added = f"2026-01-01T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}Z"
    taint = {"key": f"{DRIVER}/allocated-by", "value": "controller", "effect": "NoSchedule"}
    return [taint | {"timeAdded": added}]


def _device(mode: str, node: int, card: int, model: str, switch: int) -> Object:
    address = f"0000:{_bus(card)}:00.0"
    attributes: Object = {
        "type": _value("string", mode),
        "card": _value("string", address),
        "model": _value("string", model),
        "uuid": {"string": f"GCU-{node:08x}-{card:04x}"},
        "memoryMiB": _value("int", 42976),
        "driverVersion": _value("version", "1.2.4+12"),
        "pcieSwitch": _value("string", f"0000:{_bus(switch * 2)}:1f.0"),
        "pcieBridges": _value("string", _bridges(card, switch)),
        "resource.kubernetes.io/pciBusID": _value("string", address),
        "resource.kubernetes.io/pcieRoot": _value("string", f"pci0000:{switch // 2:02x}"),
        NUMA: _value("int", switch // 2),
    }
    match mode:
        case "shared":
            attributes["memoryPerSliceMiB"] = _value("int", 42976 // SLICES)
        case "drs":
            attributes["profiles"] = _value("string", "1g.6gb,3g.20gb,6g.40gb")
    device: Object = {
        "name": device_name(mode, card),
        "attributes": attributes,
        "taints": _taints(node),
        "capacity": _CAPACITY[mode],
    }
    if mode != "whole":
        device["allowMultipleAllocations"] = True
    return device
