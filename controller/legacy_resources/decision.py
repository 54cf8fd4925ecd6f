"""Whether limits of new pods become claims. Pure, but for the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra_driver.model.names import VENDOR_PREFIX
from dra_driver.util.hooks import Clock

_NONE_LEFT: Final = (
    f"limits of new pods become claims: no node offers resources {VENDOR_PREFIX}… of another "
    "device plugin"
)


@dataclass(frozen=True, slots=True)
class LimitsDecision:
    """`reason` is the same as long as the same resources are offered; `example` is a node."""

    translate: bool
    reason: str
    example: str = ""

    @property
    def note(self) -> str:
        """The text of the event, with the remedy where limits are left alone."""
        if self.translate:
            return f"{self.reason}. Pods that were made before keep their limits"
        return (
            f"{self.reason} ({self.example}). Pods that have claims keep them. This changes by "
            "itself when no node offers them any more; legacyResources.enabled=true or false "
            "of the chart decides otherwise"
        )


class DecisionRule:
    """Limits are left alone as soon as one node offers resources of somebody else, and become
    claims when none has done so for `delay` seconds: a plugin that is updated comes back within
    that time. `clock` is monotonic seconds."""

    def __init__(self, delay: float, clock: Clock) -> None:
        self._delay = delay
        self._clock = clock
        self._clear_since: float | None = None

    def forget(self) -> None:
        """Measure the delay anew: what happened meanwhile is not known."""
        self._clear_since = None

    def decide(
        self, foreign: Mapping[str, tuple[str, ...]], translates: bool | None
    ) -> LimitsDecision | None:
        """`foreign` has the resources of others by node; `translates` is the decision that is in
        force, None where there is none yet. Returns None while that one stays."""
        if foreign:
            self._clear_since = None
            names = sorted({name for each in foreign.values() for name in each})
            node = min(foreign)
            more = f", and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            return LimitsDecision(
                translate=False,
                reason="limits of new pods are left as they are: another device plugin offers "
                + ", ".join(names),
                example=f"on node {node}{more}",
            )
        if translates is False:
            now = self._clock()
            if self._clear_since is None:
                self._clear_since = now
            if now - self._clear_since < self._delay:
                return None
        return LimitsDecision(translate=True, reason=_NONE_LEFT)
