"""DeviceTaintRules: taints that an administrator sets on published devices (resource.k8s.io/v1;
upstream: resourceslice/tracker, 1.37.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dra_driver.model.claim import Object
from dra_driver.model.names import DRIVER


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
