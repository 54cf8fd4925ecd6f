"""Devices → the ResourceSlices of one node's pool. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra_driver.model.names import DRIVER, pool_name

API_VERSION = "resource.k8s.io/v1"
# resource.k8s.io/v1, ResourceSliceSpec.devices: 64 where any device has taints, and ours have.
MAX_DEVICES = 64
_MAX_NAME = 253

Object = dict[str, Any]


def desired_slices(
    node: Mapping[str, Any], devices: Sequence[Object], generation: int
) -> list[Object]:
    """The slices that publish `devices` for `node` (a Node object, their owner).

    Names carry a zero-padded index, as consumers walk slices in the order of their names. No
    devices make one empty slice, which says "this node was looked at" where no slice says
    nothing.
    """
    name = node["metadata"]["name"]
    chunks = [devices[i : i + MAX_DEVICES] for i in range(0, len(devices), MAX_DEVICES)] or [[]]
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {
                "name": slice_name(node, index),
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
                "nodeName": name,
                "pool": {
                    "name": pool_name(name),
                    "generation": generation,
                    "resourceSliceCount": len(chunks),
                },
                **({"devices": list(chunk)} if chunk else {}),
            },
        }
        for index, chunk in enumerate(chunks)
    ]


def slice_name(node: Mapping[str, Any], index: int) -> str:
    """``<node>-gcu.enflame.com-000``; a node name too long for that is cut, and told apart by the
    start of the node's UID. The policy agent-slices.gcu.enflame.com admits these names up to 015:
    it reads both from the agent's token, and could compute no hash."""
    name, suffix = str(node["metadata"]["name"]), f"-{DRIVER}-{index:03d}"
    if len(name) + len(suffix) > _MAX_NAME:
        start = name[: _MAX_NAME - len(suffix) - 9].rstrip(".-")
        name = f"{start}-{node['metadata']['uid'][:8]}"
    return f"{name}{suffix}"


def dropped_fields(sent: Any, kept: Any, path: str = "") -> list[str]:
    """Paths of `sent` that are missing or different in `kept`, what a server stored.

    A server drops silently what it does not know, or what a feature gate hides. Values that
    the server adds by itself are not a difference.
    """
    if isinstance(sent, Mapping):
        if not isinstance(kept, Mapping):
            return [path]
        return [
            missing
            for key, value in sent.items()
            for missing in (
                dropped_fields(value, kept[key], f"{path}.{key}".lstrip("."))
                if key in kept
                else [f"{path}.{key}".lstrip(".")]
            )
        ]
    if isinstance(sent, list):
        if not isinstance(kept, list) or len(sent) != len(kept):
            return [path]
        return [
            missing
            for index, (mine, theirs) in enumerate(zip(sent, kept, strict=True))
            for missing in dropped_fields(mine, theirs, f"{path}[{index}]")
        ]
    return [] if sent == kept else [path]
