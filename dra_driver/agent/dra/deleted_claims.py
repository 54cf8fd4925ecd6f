"""Finds cards that prepared claims still hold, although the API server has given them up.

That is so after a claim or its pods were deleted by force: Kubernetes counts the devices as free at
once, and the kubelet unprepares the claim when its containers have ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Final

from dra_driver.agent.prepared_claims import current, unlisted
from dra_driver.agent.sources import ContainersSource, LedgerSource
from dra_driver.model.claims.claim import ClaimRef, allocation
from dra_driver.model.errors import GcuError
from dra_driver.model.pci import PciAddress
from dra_driver.node.ports import ObjectReader
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock, OnChange

logger = logging.getLogger(__name__)

_INTERVAL: Final = 5.0
"""Seconds between two looks at the kubelet's list, which is a call on the node."""

_LONGEST: Final = 60.0
"""Seconds until the API server is asked again about a claim that was allocated: ended init
containers, which the kubelet does not list, may use it for long."""


@dataclass(slots=True)
class _NextQuestion:
    """When the API server is asked again about a claim."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=_INTERVAL, longest=_LONGEST))
    due: float = 0.0


@dataclass(eq=False)
class DeletedClaimDetector(Background):
    """Looks every few seconds in its own thread, and when it is asked. Thread-safe. `on_change` is
    called when `cards` may have changed.

    The API server is asked about claims alone that no container of the kubelet's list uses, ever
    more rarely while they are allocated. So a node whose pods run asks nothing.
    """

    api: ObjectReader
    containers: ContainersSource
    ledger: LedgerSource
    _: KW_ONLY
    on_change: OnChange
    clock: Clock = time.monotonic
    wait: InitVar[Wait | None] = None

    def __post_init__(self, wait: Wait | None) -> None:
        super().__init__("deleted-claims", wait=wait)
        self._retries: dict[str, _NextQuestion] = {}  # by UID, of claims that were allocated
        self._mutex = threading.Lock()
        self._deleted: frozenset[str] = frozenset()

    def run(self) -> None:
        problem = ""  # it may stay for long
        while not self._wait(_INTERVAL):
            try:
                self.detect()
            except GcuError as error:
                if str(error) != problem:
                    logger.info("whether prepared claims were deleted is unknown: %s", error)
                problem = str(error)

    def detect(self, *, at_once: Collection[str] = ()) -> None:
        """Look once; ask about the UIDs of `at_once` however late they were asked about. Raises
        KubeletError, KubeError and JournalError; then the last result stays."""
        with self._mutex:
            unused = self._unused()
            uids = {owner.uid for owner in unused}
            self._retries = {uid: retry for uid, retry in self._retries.items() if uid in uids}
            deleted = frozenset(
                owner.uid
                for owner in unused
                if (owner.uid in at_once or self._is_due(owner.uid))
                and not self._is_allocated(owner)
            )
            before, self._deleted = self._deleted, deleted
        for owner in unused:
            if owner.uid in deleted - before:
                logger.warning("%s is prepared, and Kubernetes has given it up", owner.title)
        if deleted != before:
            self.on_change()

    def deleted_among(self, uids: Collection[str]) -> frozenset[str]:
        """Those of the UIDs whose claims are such ones now; none where that is unknown. Does not
        raise."""
        try:
            self.detect(at_once=uids)
        except GcuError as error:
            logger.info("whether prepared claims were deleted is unknown: %s", error)
            return frozenset()
        return self._deleted.intersection(uids)

    def cards(self) -> frozenset[PciAddress]:
        """The cards that such claims hold. Raises JournalError."""
        claims = self.ledger().claims
        held = (claims[uid].cards for uid in self._deleted if uid in claims)
        return frozenset[PciAddress]().union(*held)

    def _unused(self) -> list[ClaimRef]:
        """The prepared claims that no container of the kubelet's list is sure to use."""
        ledger = self.ledger()
        return unlisted(ledger, self.containers()) if ledger.claims else []

    def _is_due(self, uid: str) -> bool:
        retry = self._retries.get(uid)
        return retry is None or self.clock() >= retry.due

    def _is_allocated(self, owner: ClaimRef) -> bool:
        """Whether the claim is there and has devices. A claim without pods may have been
        deallocated, and is prepared all the same."""
        claim = current(self.api, owner)
        if claim is None or allocation(claim) is None:
            return False
        retry = self._retries.setdefault(owner.uid, _NextQuestion())
        retry.due = self.clock() + retry.backoff.next()
        return True
