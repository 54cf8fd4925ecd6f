"""Device taints: published ones, and those that an administrator sets by a DeviceTaintRule
(resource.k8s.io/v1; upstream: devicetoleration.go; resourceslice/tracker, 1.37.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.model.claim import Object
from dra_driver.model.names import ALLOCATOR_CONTROLLER, DRIVER, TAINT_ALLOCATED_BY

_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})  # other effects only inform


@dataclass(frozen=True, slots=True)
class Taint:
    """A device taint (resource.k8s.io/v1, DeviceTaint). `rule` is the name of the DeviceTaintRule
    that sets it; empty for a published one."""

    key: str
    value: str
    effect: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A rule that selects devices of this driver: those of one pool, with one name, or all where
    that is None."""

    name: str
    pool: str | None
    device: str | None
    key: str
    value: str
    effect: str

    @classmethod
    def parse(cls, rule: Object) -> TaintRule | None:
        """None for a rule that selects no device of this driver. An empty selector selects all
        devices, a missing one selects none."""
        selector = rule["spec"].get("deviceSelector")
        if selector is None or selector.get("driver") not in {None, DRIVER}:
            return None
        taint = rule["spec"]["taint"]
        return cls(
            name=rule["metadata"]["name"],
            pool=selector.get("pool"),
            device=selector.get("device"),
            key=taint["key"],
            value=taint.get("value", ""),
            effect=taint["effect"],
        )

    def selects_pool(self, pool: str) -> bool:
        """Whether the rule can select a device of the pool."""
        return self.pool in {None, pool}

    def selects(self, device: str) -> bool:
        """Whether the rule selects the device of that name, in a pool that it selects."""
        return self.device in {None, device}

    def taint(self) -> Mapping[str, str]:
        """The taint as one of a device, with the name of the rule."""
        return {"key": self.key, "value": self.value, "effect": self.effect, "rule": self.name}


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
