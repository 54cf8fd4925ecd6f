"""Pods with limits by memory and compute that are refused, by the same words in both worlds."""

from __future__ import annotations

from typing import Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ANNOTATION_ISOLATION,
    RESOURCE_CORE,
    RESOURCE_MEMORY,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)

REFUSED: Final = {
    "all compute of a card": (
        [{RESOURCE_CORE: "100"}],
        "container c0: the limit enflame.com/gcu-core is 1 to 99 percent of one card. For a whole",
    ),
    "no compute": (
        [{RESOURCE_MEMORY: "10", RESOURCE_CORE: "0"}],
        "container c0: the limit enflame.com/gcu-core is 1 or more",
    ),
    "a part of a percent": ([{RESOURCE_CORE: "500m"}], "must be an integer"),
    "memory in bytes": (
        [{RESOURCE_MEMORY: "20Gi"}],
        "the limit enflame.com/gcu-memory is a number of MiB, such as 20480",
    ),
    "compute beside slices": (
        [{RESOURCE_CORE: "10"}, {RESOURCE_SHARED: "1"}],
        "asks for enflame.com/shared-gcu and enflame.com/gcu-core: a pod asks for one kind of GCU",
    ),
    "compute beside a whole card": (
        [{RESOURCE_CORE: "10", RESOURCE_WHOLE: "1"}],
        "asks for enflame.com/gcu and enflame.com/gcu-core: a pod asks for one kind of GCU",
    ),
}
"""The limits of a pod's containers, and words of the refusal."""

ISOLATIONS: Final = {
    "burst-share": "no isolation of GCUs lends idle compute",
    "none": "fixed-share or best-effort",
}
"""What else the annotation says, and words of the refusal."""

TWENTY_GIB: Final = {RESOURCE_MEMORY: "20480", RESOURCE_CORE: "10"}


def isolate(pod: Object, isolation: str) -> None:
    """Give the pod the annotation."""
    pod["metadata"]["annotations"] = {ANNOTATION_ISOLATION: isolation}
