"""Lets a prepare wait for cards that deleted claims hold for a moment longer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from dra_driver.agent.sources import LedgerSource
from dra_driver.kubelet_api.dra.service import ClaimHandler
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import DeviceHeld, GcuError
from dra_driver.node.claim_reader import Pause
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

# The kubelet gives a call up after 45 s, and repeats it 60 to 90 s later. Containers that ignore
# SIGTERM end after 30 s by default; the rest is for the prepare.
_SECONDS: Final = 32.0
_EVERY: Final = 0.25


@dataclass(frozen=True, slots=True)
class PatientHandler:
    """`handler`, whose prepare is repeated once if deleted claims are in its way and they are
    unprepared in time. Otherwise the kubelet would repeat it a minute later. `deleted_among`
    returns those of the UIDs whose claims Kubernetes has given up; it does not raise."""

    handler: ClaimHandler
    ledger: LedgerSource
    deleted_among: Callable[[Collection[str]], frozenset[str]]
    _: KW_ONLY
    clock: Clock = time.monotonic
    pause: Pause = time.sleep

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        """As `ClaimHandler`."""
        results = self.handler.prepare(refs, is_cancelled=is_cancelled)
        errors = [each for each in results.values() if isinstance(each, GcuError)]
        held = [each for each in errors if isinstance(each, DeviceHeld)]
        if not errors or len(held) < len(errors):
            return results
        deleted = self.deleted_among(frozenset[str]().union(*(each.holders for each in held)))
        if not all(each.holders & deleted for each in held):
            return results
        logger.info("waiting for claims that were deleted: %s", "; ".join(map(str, held)))
        end = self.clock() + _SECONDS
        while deleted & self.ledger().claims.keys():
            if self.clock() >= end or is_cancelled():
                return results
            self.pause(_EVERY)
        return self.handler.prepare(refs, is_cancelled=is_cancelled)

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        """As `ClaimHandler`."""
        return self.handler.unprepare(refs)
