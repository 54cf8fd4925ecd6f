"""Devices and slices as tests of publishing need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dra_driver.agent.slices.slice_diff import diff_slices
from dra_driver.model.claims.claim import Object

NODE: Object = {"metadata": {"name": "n1", "uid": "node-uid"}}


def device(bus: int, **more: Any) -> Object:
    return {"name": f"whole-0000-{bus:02x}-00-0", "taints": [{"key": "k"}], **more}


def stored(slices: Iterable[Object], version: int = 7) -> tuple[Object, ...]:
    """The slices as a server gives them back."""
    return tuple(
        {
            **each,
            "metadata": {
                **each["metadata"],
                "uid": f"uid of {each['metadata']['name']}",
                "resourceVersion": str(version),
            },
        }
        for each in slices
    )


def published(*devices: Object, version: int = 7) -> tuple[Object, ...]:
    """What stands on the server once these were published."""
    return stored(diff_slices(NODE, devices, []).create, version)
