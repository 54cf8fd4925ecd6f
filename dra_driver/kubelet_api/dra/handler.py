"""The interface of what prepares claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import GcuError


class ClaimHandler(Protocol):
    """Prepares claims. Both methods are called by several threads at once, must be idempotent
    by claim UID, and give a result for each claim, by UID; a claim's failure is its result."""

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        """Make the claims of one pod usable on this node.

        A call that `is_cancelled` creates nothing: its claims may have been unprepared since."""

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        """Undo prepare; a claim that is not prepared is a success."""
