"""A cluster of many cards as objects of an API server: what the page is measured on."""

from __future__ import annotations

from collections.abc import Iterator

from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_SHARED, CLASS_WHOLE, DRIVER
from tests.unit.controller.allocator.build import CLASSES, UNHEALTHY, device, pool
from tests.unit.controller.world import node

_MODES = ("whole", "shared", "drs")
_NAMESPACES = ("research", "team-vision", "team-speech", "inference", "ci", "demo")
_CREATED = "2026-11-28T06:00:00Z"
_PROFILES = {1: "1g.6gb", 3: "3g.20gb"}


def fleet(nodes: int, cards: int = 8, waiting: int = 6) -> Iterator[tuple[Resource, Object]]:
    """The objects: about two thirds of the cards are held, in each mode, and some are unhealthy."""
    for device_class in CLASSES.values():
        yield DEVICE_CLASSES, device_class
    for number in range(nodes):
        yield from _node(number, f"gcu-node-{number + 1:04}", cards)
    for number in range(waiting):
        yield from _waiting(number)


def _node(number: int, name: str, cards: int) -> Iterator[tuple[Resource, Object]]:
    spec = {"unschedulable": True} if number % 17 == 5 else {}
    yield NODES, node(name) | {"spec": spec}
    devices = []
    for bus in range(1, cards + 1):
        is_bad = (number * 8 + bus) % 37 == 0
        taints = [UNHEALTHY] if is_bad else []
        devices += [device(mode, bus, taints=taints) for mode in _MODES]
        yield from _held(number, name, bus)
    for each in pool(name, devices):
        yield RESOURCE_SLICES, each


def _held(number: int, name_of_node: str, bus: int) -> Iterator[tuple[Resource, Object]]:
    kind, at = (number * 5 + bus * 7) % 10, (name_of_node, bus)
    if kind < 4:
        yield from _holder(f"train-{number}-{bus}", number + bus // 4, at, "whole", 1)
    elif kind < 6:
        for part in range(1 + kind % 3):
            name = f"serve-{number}-{bus}-{part}"
            yield from _holder(name, number + part, at, "shared", 1 + part)
    elif kind == 6:
        for size in (1, 3):
            yield from _holder(f"part-{number}-{bus}-{size}", number + size, at, "drs", size)


def _holder(
    name: str, owner: int, card: tuple[str, int], mode: str, amount: int
) -> Iterator[tuple[Resource, Object]]:
    namespace, (holding_node, bus) = _NAMESPACES[owner % len(_NAMESPACES)], card
    result: Object = {
        "request": "gcu",
        "driver": DRIVER,
        "pool": f"{DRIVER}/{holding_node}",
        "device": f"{mode}-0000-{bus:02x}-00-0",
    }
    capacity = {"shared": "slices", "drs": "size"}.get(mode)
    if capacity:
        result["consumedCapacity"] = {capacity: str(amount)}
    data: Object = {"index": bus - 1, "minor": bus - 1}
    if mode == "drs":
        data["profile"] = _PROFILES[amount]
    prepared = {key: result[key] for key in ("driver", "pool", "device")} | {"data": data}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"pod-{name}"}],
        "devices": [prepared],
    }
    yield RESOURCE_CLAIMS, _claim(namespace, name, CLASS_WHOLE) | {"status": status}
    pod = _pod(namespace, name, "Running")
    pod["spec"]["nodeName"] = holding_node
    yield PODS, pod


def _waiting(number: int) -> Iterator[tuple[Resource, Object]]:
    namespace, name = _NAMESPACES[number % len(_NAMESPACES)], f"pending-{number}"
    claim = _claim(namespace, name, CLASS_SHARED if number % 2 else CLASS_WHOLE)
    yield RESOURCE_CLAIMS, claim | {"status": {}}
    yield PODS, _pod(namespace, name, "Pending")


def _claim(namespace: str, name: str, device_class: str) -> Object:
    request = {"name": "gcu", "exactly": {"deviceClassName": device_class, "count": 1}}
    metadata = {"namespace": namespace, "name": name, "uid": f"claim-{name}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}


def _pod(namespace: str, name: str, phase: str) -> Object:
    container = {"name": "main", "resources": {"claims": [{"name": "gcu"}]}}
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"pod-{name}",
            "creationTimestamp": _CREATED,
        },
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gcu", "resourceClaimName": name}],
        },
        "status": {"phase": phase},
    }
