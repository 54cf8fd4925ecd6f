"""A handler of claims that answers what a test has set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import GcuError

ONE, TWO = ClaimRef("team", "one", "uid-1"), ClaimRef("team", "two", "uid-2")


@dataclass
class Handler:
    """Answers what it is told to; remembers what it was asked."""

    prepared: Mapping[str, Prepared | GcuError] | Exception = field(default_factory=dict)
    unprepared: Mapping[str, GcuError | None] | Exception = field(default_factory=dict)
    asked: list[tuple[ClaimRef, ...]] = field(default_factory=list)

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        self.asked.append(tuple(refs))
        if isinstance(self.prepared, Exception):
            raise self.prepared
        return self.prepared

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        self.asked.append(tuple(refs))
        if isinstance(self.unprepared, Exception):
            raise self.unprepared
        return self.unprepared
