"""Which device taints keep a request away (upstream: resourceclaim, devicetoleration.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controller.allocator.device import Taint
from dra_driver.model.names import ALLOCATOR_CONTROLLER, TAINT_ALLOCATED_BY

_PREVENTING = frozenset({"NoSchedule", "NoExecute"})  # other effects only inform


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Mapping[str, Any]]
) -> tuple[Taint, ...]:
    """The `taints` that keep a request with these tolerations away. The one that says
    that this allocator allocates the device is ours to ignore, and nobody else's."""
    given = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect in _PREVENTING
        and not _is_our_own(taint)
        and not any(_tolerates(toleration, taint) for toleration in given)
    )


def _is_our_own(taint: Taint) -> bool:
    return taint.key == TAINT_ALLOCATED_BY and taint.value == ALLOCATOR_CONTROLLER


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool(toleration.get("value", "") == taint.value)
    return bool(operator == "Exists")
