"""Device taints: published ones, and those that an administrator sets by a DeviceTaintRule
(resource.k8s.io/v1; upstream: devicetoleration.go; resourceslice/tracker, 1.37.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_CONTROLLER, DRIVER, TAINT_ALLOCATED_BY

_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})  # other effects only inform


@dataclass(frozen=True, slots=True)
class Taint:
    """A device taint. `rule` is the name of the DeviceTaintRule that sets it; empty if it is
    published."""

    key: str
    value: str
    effect: str
    rule: str = ""

    @classmethod
    def parse(cls, entry: Mapping[str, Any], rule: str = "") -> Taint:
        """From a DeviceTaint (resource.k8s.io/v1)."""
        return cls(entry["key"], entry.get("value", ""), entry["effect"], rule)


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A rule for devices of one driver: those of one pool, with one name, or all, if that is
    None."""

    pool: str | None
    device: str | None
    taint: Taint

    @classmethod
    def parse(cls, rule: Object, driver: str = DRIVER) -> TaintRule | None:
        """From a DeviceTaintRule of resource.k8s.io/v1 (`with_selector` for v1beta2); None if it
        selects no device of the driver. An empty selector selects all devices, a missing one
        selects none."""
        selector = rule["spec"].get("deviceSelector")
        if selector is None or selector.get("driver") not in {None, driver}:
            return None
        taint = Taint.parse(rule["spec"]["taint"], rule["metadata"]["name"])
        return cls(selector.get("pool"), selector.get("device"), taint)

    def selects(self, pool: str, device: str | None = None) -> bool:
        """Whether the rule selects the device of that name, or any of the pool."""
        return self.pool in {None, pool} and (device is None or self.device in {None, device})


def with_selector(rule: Object) -> Object:
    """A DeviceTaintRule of v1beta2 as v1 writes it: a missing selector selects all devices there.

    v1 is served from Kubernetes 1.37 on, so rules that can be read as v1beta2 alone are those of a
    1.36 server. Its kube-scheduler takes a missing selector for an empty one (resourceslice/tracker
    of 1.36.3 and 1.36.6). 1.37.1 takes it for none, as the API's documentation has always had it;
    kube-scheduler 1.37.0 still differs from that, and is not followed. The controller that evicts
    pods took it for none in all of them (devicetainteviction).
    """
    spec = rule["spec"]
    if spec.get("deviceSelector") is not None:
        return rule
    return rule | {"spec": spec | {"deviceSelector": {}}}


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Mapping[str, Any]]
) -> tuple[Taint, ...]:
    """The `taints` that keep a request with these tolerations away. Only this allocator ignores the
    one that says that it allocates the device."""
    given = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect in _PREVENTING
        and (taint.key, taint.value) != (TAINT_ALLOCATED_BY, ALLOCATOR_CONTROLLER)
        and not any(_tolerates(toleration, taint) for toleration in given)
    )


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool(toleration.get("value", "") == taint.value)
    return bool(operator == "Exists")
