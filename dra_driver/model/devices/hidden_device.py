"""A device as a hidden slice has it: what every server with ``resource.k8s.io/v1`` stores.

Kubernetes 1.34 and 1.35 drop ``taints``, ``allowMultipleAllocations`` and ``requestPolicy`` from a
device (``pkg/registry/resource/resourceslice/strategy.go``, ``dropDisabledFields``; their feature
gates are off). A hidden slice is the same on every server: it has none of these fields. Taints are
attributes there, and the other two follow from the device's type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_driver.model import names
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import attribute_text, taint
from dra_driver.model.devices.device_shares import with_shares
from dra_driver.model.errors import InvalidValue

_TAINTS: Final = {
    names.TAINT_UNHEALTHY: "unhealthy",
    names.TAINT_FOREIGN: "foreign",
    names.TAINT_CHANGING: "changing",
    names.TAINT_FAILING: "failing",
    names.TAINT_HELD: "held",
}
"""The attribute for each taint: a string of the taint's values with commas between them, or true
where the taint has no value. Effects are left out: servers that need hidden slices evict nobody."""


_DROPPED: Final = ("taints", "allowMultipleAllocations")


def hidden_name(node: str) -> str:
    """``<node>-gcu.enflame.com-hidden``: the agent watches the node's hidden slice by its name,
    because no field selector finds the slice of a node that it does not name."""
    suffix = f"-{names.DRIVER}-hidden"
    return f"{names.fitting(node, names.LONGEST_NAME - len(suffix))}{suffix}"


def hide(device: Mapping[str, Any]) -> Object:
    """The device for a hidden slice."""
    kept = {key: each for key, each in device.items() if key not in _DROPPED}
    if "capacity" in device:
        kept["capacity"] = {
            name: {"value": each["value"]} for name, each in device["capacity"].items()
        }
    attributes = dict(device.get("attributes", {}))
    for key, name in _TAINTS.items():
        values = [each.get("value", "") for each in device.get("taints", ()) if each["key"] == key]
        if values:
            text = ",".join(filter(None, values))
            attributes[name] = {"string": attribute_text(text)} if text else {"bool": True}
    return kept | ({"attributes": attributes} if attributes else {})


def reveal(entry: Mapping[str, Any]) -> Object:
    """The device that a hidden slice has as `entry`, with all fields that a visible slice has.

    An entry that this driver did not write gets the taint ``allocated-by``, and nothing else.
    """
    device = reveal_taints(entry)
    try:
        return dict(with_shares(device))
    except InvalidValue:
        return device


def reveal_taints(entry: Mapping[str, Any]) -> Object:
    """The entry of a hidden slice with its attributes for taints as taints."""
    attributes = dict(entry.get("attributes") or {})
    taints = [taint(names.TAINT_ALLOCATED_BY, names.ALLOCATOR_CONTROLLER)]
    for key, name in _TAINTS.items():
        attribute = attributes.pop(name, None)
        if attribute:
            taints += [taint(key, value) for value in str(attribute.get("string", "")).split(",")]
    device = {**entry, "taints": taints}
    if "attributes" in entry:
        device["attributes"] = attributes
    return device
