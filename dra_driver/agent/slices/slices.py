"""Devices → the ResourceSlices of one node's pool. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import counter_sets
from dra_driver.model.devices.hidden_device import hidden_name, hide, reveal
from dra_driver.model.names import (
    ATTR_MODEL,
    DRIVER,
    LABEL_MODEL,
    LONGEST_NAME,
    VALID_LABEL,
    fitting,
    pool_name,
)

API_VERSION = "resource.k8s.io/v1"
# resource.k8s.io/v1, ResourceSliceSpec.devices: 64 if any device has taints or consumes counters.
MAX_DEVICES = 64
_MAX_COUNTER_SETS = 8  # ResourceSliceMaxCounterSets

_NO_NODE: Final[Mapping[str, Any]] = {"nodeSelectorTerms": [{}]}
"""A NodeSelector (core/v1) whose one term is empty: valid, and it matches no node."""


class SliceForm(StrEnum):
    """What keeps kube-scheduler from allocating the devices of a slice.

    A visible slice names its node, and its devices are tainted. A hidden slice is offered to no
    node; only its pool's name says which node it belongs to.
    """

    VISIBLE = "visible"
    HIDDEN = "hidden"


def own_slices(node: str, form: SliceForm = SliceForm.VISIBLE) -> str:
    """The field selector of this driver's slices of `node` in that form. The hidden one does not
    name its node, and an API server sends its events to no other watch than one of its name."""
    if form is SliceForm.HIDDEN:
        return f"metadata.name={hidden_name(node)}"
    return f"spec.nodeName={node},spec.driver={DRIVER}"


def desired_slices(
    node: Mapping[str, Any],
    devices: Sequence[Object],
    generation: int,
    form: SliceForm = SliceForm.VISIBLE,
) -> list[Object]:
    """The slices that publish `devices` for `node` (a Node object, their owner).

    Names end in a zero-padded index, because consumers read slices in the order of their names.
    Without devices there is one empty slice: it shows that the agent has read the node.
    """
    name = node["metadata"]["name"]
    hidden = form is SliceForm.HIDDEN
    if hidden:
        # Without taints a slice may have 128 devices, those of 42 cards; the server refuses more.
        contents: list[Object] = [{"devices": [*map(hide, devices)]}] if devices else []
    else:
        contents = _visible_contents([*map(_without_empty_taints, devices)])
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {
                "name": hidden_name(name) if hidden else slice_name(node, index),
                **_labels(content.get("devices", ())),
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": name,
                        "uid": node["metadata"]["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "driver": DRIVER,
                **({"nodeSelector": _NO_NODE} if hidden else {"nodeName": name}),
                "pool": {
                    "name": pool_name(name),
                    "generation": generation,
                    "resourceSliceCount": len(contents) or 1,
                },
                **content,
            },
        }
        for index, content in enumerate(contents or [{}])
    ]


def _visible_contents(devices: Sequence[Object]) -> list[Object]:
    """Counter sets are in slices of their own: the API allows a slice one of both."""
    sets = counter_sets(devices)
    return [
        *({"devices": list(each)} for each in _chunks(devices, MAX_DEVICES)),
        *({"sharedCounters": list(each)} for each in _chunks(sets, _MAX_COUNTER_SETS)),
    ]


def _chunks(whole: Sequence[Object], most: int) -> list[Sequence[Object]]:
    return [whole[start : start + most] for start in range(0, len(whole), most)]


def _labels(devices: Sequence[Object]) -> Object:
    """The model of the cards, if it is one, and can be a label's value: for people who list
    slices."""
    attributes = [each.get("attributes") or {} for each in devices]
    models = {(each.get(ATTR_MODEL) or {}).get("string", "") for each in attributes}
    if len(models) != 1 or not VALID_LABEL.fullmatch(model := models.pop()):
        return {}
    return {"labels": {LABEL_MODEL: model}}


def _without_empty_taints(device: Object) -> Object:
    """The API server stores no empty list, which would look like a field that it drops."""
    return {key: value for key, value in device.items() if key != "taints" or value}


def slice_name(node: Mapping[str, Any], index: int) -> str:
    """``<node>-gcu.enflame.com-000``. A node name that is too long is cut, and followed by the
    start of the node's UID. The policy agent-slices.gcu.enflame.com admits these names up to 015:
    it reads name and UID from the agent's token, and cannot compute a hash."""
    name, suffix = str(node["metadata"]["name"]), f"-{DRIVER}-{index:03d}"
    name = fitting(name, LONGEST_NAME - len(suffix), node["metadata"]["uid"][:8])
    return f"{name}{suffix}"


def name_of(published: Mapping[str, Any]) -> str:
    return str(published["metadata"]["name"])


def is_hidden(published: Mapping[str, Any]) -> bool:
    """Whether the slice names no node."""
    return not published["spec"].get("nodeName")


def devices_of(slices: Iterable[Object]) -> list[Object]:
    """The devices of a node's slices with all their fields, in either form. If a device is in two
    slices, as during a change of form, the slice of the newer generation counts."""
    found: dict[str, Object] = {}
    for published in sorted(slices, key=lambda each: int(each["spec"]["pool"]["generation"])):
        devices = published["spec"].get("devices", ())
        found |= {
            device["name"]: reveal(device) if is_hidden(published) else device for device in devices
        }
    return list(found.values())


def dropped_fields(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Paths of `sent` that are missing or different in `stored`, the server's answer.

    A server silently drops unknown fields, and fields of a disabled feature gate. Values that the
    server adds are not a difference.
    """
    if isinstance(sent, Mapping) and isinstance(stored, Mapping):
        parts = [
            (value, stored.get(key), f"{path}.{key}".lstrip(".")) for key, value in sent.items()
        ]
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        both = zip(sent, stored, strict=True)
        parts = [(mine, theirs, f"{path}[{index}]") for index, (mine, theirs) in enumerate(both)]
    else:
        return [] if sent == stored else [path]
    return [missing for each in parts for missing in dropped_fields(*each)]
