"""Builds slices, classes and claims as the API server would return them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from controller.allocator.allocated_devices import (
    AllocatedDevices,
    allocations_of,
    allocations_of_others,
)
from controller.allocator.inventory import Inventory
from controller.allocator.others.drivers import OtherDrivers
from controller.allocator.state import State
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    CLASS_ADMIN,
    CLASS_DRS,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
)
from dra_driver.selector.selector import Selectors

TAINT = {"key": "gcu.enflame.com/allocated-by", "value": "controller", "effect": "NoSchedule"}
UNHEALTHY = {"key": "gcu.enflame.com/unhealthy", "value": "lost", "effect": "NoSchedule"}
HELD = {"key": "gcu.enflame.com/held", "value": "deleted-claim", "effect": "NoSchedule"}


def card(bus: int) -> str:
    return f"0000:{bus:02x}:00.0"


def device(
    mode: str,
    bus: int,
    *,
    switch: str = "",
    root: str = "",
    numa: int | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    slices: int = 6,
) -> Object:
    """A device of the card at that bus, as the agent publishes it."""
    attributes: Object = {
        "type": {"string": mode},
        "card": {"string": card(bus)},
        "model": {"string": "S60"},
        "memoryMiB": {"int": 42976},
    }
    if switch:
        attributes["pcieSwitch"] = {"string": switch}
    if root:
        attributes["resource.kubernetes.io/pcieRoot"] = {"string": root}
    if numa is not None:
        attributes["resource.kubernetes.io/numaNode"] = {"int": numa}
    found: Object = {
        "name": f"{mode}-0000-{bus:02x}-00-0",
        "attributes": attributes,
        "taints": [TAINT, *taints],
    }
    match mode:
        case "whole" | "admin":
            found["capacity"] = {"memory": {"value": "42976Mi"}}
        case "shared":
            span = {"min": "1", "max": str(slices), "step": "1"}
            policy = {"default": "1", "validRange": span}
            attributes["memoryPerSliceMiB"] = {"int": 42976 // slices}
            found["allowMultipleAllocations"] = True
            found["capacity"] = {"slices": {"value": str(slices), "requestPolicy": policy}}
        case "drs":
            attributes["profiles"] = {"string": "1g.6gb,3g.20gb,6g.40gb"}
            policy = {"default": "1", "validValues": ["1", "3", "6"]}
            found["allowMultipleAllocations"] = True
            found["capacity"] = {"size": {"value": "6", "requestPolicy": policy}}
    return found


def stripped(found: Object) -> Object:
    """The device as API servers before Kubernetes 1.36 store it."""
    capacity = {name: {"value": each["value"]} for name, each in found["capacity"].items()}
    dropped = ("allowMultipleAllocations", "taints")
    kept = {key: value for key, value in found.items() if key not in dropped}
    return kept | {"capacity": capacity}


def without_shares(status: Object) -> Object:
    """An allocation as such a server stores it."""
    devices, dropped = status["devices"], ("shareID", "consumedCapacity")
    results = [
        {key: value for key, value in each.items() if key not in dropped}
        for each in devices["results"]
    ]
    return status | {"devices": devices | {"results": results}}


def pool(node: str, devices: Sequence[Object], *, driver: str = DRIVER) -> list[Object]:
    """A node's complete pool in one slice."""
    return [resource_slice(node, devices, driver=driver)]


def resource_slice(
    node: str,
    devices: Sequence[Object],
    *,
    index: int = 0,
    count: int = 1,
    generation: int = 1,
    driver: str = DRIVER,
    **more: Any,
) -> Object:
    """`more` goes into the spec: another scope than `nodeName`, or counters instead of devices."""
    spec: Object = {
        "driver": driver,
        "pool": {
            "name": f"{driver}/{node}",
            "generation": generation,
            "resourceSliceCount": count,
        },
        **more,
    }
    if devices:
        spec["devices"] = list(devices)
    if not more.keys() & {"nodeSelector", "allNodes", "perDeviceNodeSelection"}:
        spec["nodeName"] = node
    return {
        "metadata": {"name": f"{node}-{generation}-{index}", "resourceVersion": "1"},
        "spec": spec,
    }


def device_class(name: str, *modes: str, config: Sequence[Object] = ()) -> Object:
    types = f'device.attributes["{DRIVER}"].type in {json.dumps(modes)}'
    expression = f'device.driver == "{DRIVER}" && {types}'
    spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
    if config:
        spec["config"] = list(config)
    return {"metadata": {"name": name}, "spec": spec}


CLASSES = {
    name: device_class(name, *modes)
    for name, modes in {
        CLASS_WHOLE: ("whole",),
        CLASS_SHARED: ("shared",),
        CLASS_DRS: ("drs",),
        CLASS_PART: ("shared", "drs"),
    }.items()
}
ANY = "any.example.com"  # a class that somebody made for all devices of the driver
ANY_CLASS: Object = {
    "metadata": {"name": ANY},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
OTHER_CLASS: Object = {
    "metadata": {"name": "gpu.example.com"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}


ALL_CLASSES = CLASSES | {
    CLASS_ADMIN: device_class(CLASS_ADMIN, "admin"),  # where kube-scheduler allocates
    "gpu.example.com": OTHER_CLASS,
    ANY: ANY_CLASS,
}


def taint_rule(name: str, selector: Object | None, taint: Object) -> Object:
    """A DeviceTaintRule; without a selector where that is None."""
    spec: Object = {"taint": taint} | ({} if selector is None else {"deviceSelector": selector})
    return {"metadata": {"name": name}, "spec": spec}


def plain(
    name: str,
    *,
    attributes: Mapping[str, object] | None = None,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    **more: Any,
) -> Object:
    """A device that is no card: values of `attributes` by their kind, `counters` consumed by
    set and name."""
    found: Object = {"name": name, **more}
    if attributes:
        found["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
    if counters:
        found["consumesCounters"] = [
            {"counterSet": each, "counters": {key: {"value": v} for key, v in used.items()}}
            for each, used in counters.items()
        ]
    return found


def _attribute(value: object) -> Object:
    kinds = {bool: "bool", int: "int", str: "string"}
    if isinstance(value, list):
        return {f"{kinds[type(value[0])]}s": value}
    return {kinds[type(value)]: value}


def counter_sets(**sets: Mapping[str, str]) -> list[Object]:
    return [
        {"name": name, "counters": {key: {"value": value} for key, value in counters.items()}}
        for name, counters in sets.items()
    ]


def request(
    name: str = "gcu",
    *,
    cls: str = "gcu.enflame.com",
    count: int = 1,
    capacity: Mapping[str, str] | None = None,
    selector: str = "",
    tolerations: Sequence[Object] = (),
    **more: Any,
) -> Object:
    exactly: Object = {
        "deviceClassName": cls,
        "allocationMode": "ExactCount",
        "count": count,
        **more,
    }
    if capacity:
        exactly["capacity"] = {"requests": dict(capacity)}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    if tolerations:
        exactly["tolerations"] = list(tolerations)
    return {"name": name, "exactly": exactly}


def first_available(name: str, *subs: Object) -> Object:
    """A request with alternatives, written like requests of their own."""
    return {
        "name": name,
        "firstAvailable": [{"name": each["name"], **each["exactly"]} for each in subs],
    }


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def claim(
    name: str,
    requests: Iterable[Object] = (),
    *,
    constraints: Sequence[Object] = (),
    config: Sequence[Object] = (),
) -> Object:
    devices: Object = {"requests": list(requests) or [request()]}
    if constraints:
        devices["constraints"] = list(constraints)
    if config:
        devices["config"] = list(config)
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {"devices": devices},
    }


def allocated(
    name: str,
    node: str,
    *devices: str,
    consumed: Mapping[str, str] | None = None,
    **more: Any,
) -> Object:
    """A claim that somebody allocated these devices of the node to."""
    results = [
        {
            "request": "gcu",
            "driver": DRIVER,
            "pool": f"{DRIVER}/{node}",
            "device": each,
            **({"shareID": f"share-{name}", "consumedCapacity": consumed} if consumed else {}),
            **more,
        }
        for each in devices
    ]
    return claim(name) | {"status": {"allocation": {"devices": {"results": results}}}}


def state(
    slices: Iterable[Object],
    claims: Iterable[Object] = (),
    *,
    classes: Mapping[str, Object] | None = None,
    selectors: Selectors | None = None,
    for_scheduler: bool = False,
) -> State:
    allocated, others = AllocatedDevices(), OtherDrivers()
    for each in claims:
        for hold in allocations_of(each):
            allocated.add(hold)
        for of_other in allocations_of_others(each):
            others.allocated.add(of_other)
    published = list(slices)
    for each in published:
        if each["spec"]["driver"] != DRIVER:
            others.inventory.put(each)
    return State(
        inventory=Inventory.of(published, for_scheduler=for_scheduler),
        allocated=allocated,
        classes=ALL_CLASSES if classes is None else classes,
        selectors=selectors or Selectors(),
        others=others,
    )
