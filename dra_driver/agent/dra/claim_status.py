"""Tells people in a claim's ``status.devices`` what it was given: card, index, minor, instance.

Written after the kubelet has its answer, and again when a card's health or minor changes: nobody
waits for it, and a claim is prepared without it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.errors import Invalid, KubeError, NotFound, TooManyRequests, Unavailable
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.card import Card
from dra_driver.model.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER, FIELD_MANAGER
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger, State
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.claims.device_status import device_statuses
from dra_driver.node.claims.failures import Waiting
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)


Cards = Mapping[PciAddress, Card]

_IMMUTABLE: Final = "status.allocation: Invalid value"
"""In the API server's words when it takes a patch of the status for a change of the allocation."""
_STATUS_REFUSED: Final = (
    "status.devices stays without what the claim has been given: its allocation holds opaque "
    "parameters that were not written as the API server writes JSON (white space, order of keys, "
    "escapes, numbers), and so the API server accepts no patch of its status. The claim works. "
    "A claim that gcu-dra-controller allocates from now on shows its devices"
)


@dataclass(slots=True)
class _Setback:
    """A claim whose status could not be written, and when it is tried again."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    due: float = 0.0


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is to be told of a claim: what it holds, or why it does not."""

    holds: tuple[PreparedDevice, ...]
    failure: str = ""

    def statuses(
        self,
        cards: Cards,
        before: Sequence[Mapping[str, Any]] = (),
        *,
        now: str = "",
    ) -> Sequence[Object]:
        """As `device_statuses`."""
        return device_statuses(self.holds, cards, before, failure=self.failure, now=now)


class ClaimStatuses(Background):
    """Writes the statuses of the claims that are prepared in `ledger`, and of those that are
    `waiting` because it fails, in a thread of its own, whenever it is woken.

    `cards` has the cards that can be read now; None while none has been read yet, which says
    nothing of them, and nothing is written. The API server keeps other drivers' entries and drops
    ours by itself when the claim is released.
    """

    def __init__(
        self,
        api: Api,
        *,
        ledger: Callable[[], Ledger],
        cards: Callable[[], Mapping[PciAddress, Card] | None],
        waiting: Callable[[], Mapping[str, Waiting]] = dict,
        refused: Callable[[ClaimRef, str], None] = lambda _ref, _note: None,
        backoff: Backoff | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        wait: Wait | None = None,
    ) -> None:
        """`refused` is called once for a claim whose status can never be written, with the reason.
        `wait(seconds)` sleeps, and returns True when the writer was stopped. `clock` is
        monotonic seconds."""
        super().__init__("claim-status", wait=wait, interrupt=self.wake)
        self._api = api
        self._ledger = ledger
        self._cards = cards
        self._waiting = waiting
        self._refused = refused
        self._backoff = backoff or Backoff(first=1.0, longest=60.0)
        self._now = now
        self._clock = clock
        self._told: dict[ClaimRef, Sequence[Object]] = {}
        self._setbacks: dict[ClaimRef, _Setback] = {}
        self._unwritable: set[ClaimRef] = set()
        self._wake = threading.Event()

    def start(self) -> None:
        self._wake.set()
        super().start()

    def wake(self) -> None:
        """Something was prepared or unprepared, or a card has changed."""
        self._wake.set()

    def run(self) -> None:
        """The thread's work."""
        pause: float | None = None
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopped.is_set():
                return
            try:
                pause = self.write()
            except GcuError as error:
                log = logger.info if isinstance(error, KubeError) else logger.warning
                log("the statuses of claims are written later: %s", error)
                if self._wait(self._backoff.next()):
                    return
                self._wake.set()
            else:
                self._backoff.reset()

    def write(self) -> float | None:
        """Write what is not told yet. What was written is not written again.

        A claim that the API server refuses, or fails with, keeps no other one waiting: it is tried
        again by a later call, the soonest of which is due in the seconds that are given back.
        A claim whose allocation would be changed by any patch is not tried again.
        Raises JournalError; where the server does not answer at all, Unavailable at once, and
        TooManyRequests.
        """
        cards = self._cards()
        if cards is None:
            return None
        held = self._subjects()
        self._told = {ref: told for ref, told in self._told.items() if ref in held}
        self._setbacks = {ref: setback for ref, setback in self._setbacks.items() if ref in held}
        self._unwritable &= held.keys()
        for ref, subject in held.items():
            if ref in self._unwritable:
                continue
            news = subject.statuses(cards)
            if self._told.get(ref) == news:
                self._setbacks.pop(ref, None)
            elif self._is_due(ref):
                self._attempt(ref, subject, cards, news)
        now = self._clock()
        return min((max(0.0, each.due - now) for each in self._setbacks.values()), default=None)

    def _subjects(self) -> dict[ClaimRef, _Subject]:
        prepared = {
            holding.owner: _Subject(holding.devices)
            for holding in self._ledger().claims.values()
            if holding.state is State.PREPARE_COMPLETED and isinstance(holding.owner, ClaimRef)
        }
        return prepared | {
            each.owner: _Subject(each.holds, each.reason)
            for each in self._waiting().values()
            if isinstance(each.owner, ClaimRef)
        }

    def _is_due(self, ref: ClaimRef) -> bool:
        setback = self._setbacks.get(ref)
        return setback is None or self._clock() >= setback.due

    def _attempt(
        self, ref: ClaimRef, subject: _Subject, cards: Cards, news: Sequence[Object]
    ) -> None:
        try:
            self._write(ref, subject, cards)
        except KubeError as error:
            if _concerns_all(error):
                raise
            if isinstance(error, Invalid) and _IMMUTABLE in str(error):
                self._unwritable.add(ref)
                self._setbacks.pop(ref, None)
                logger.warning("claim %s: %s", ref, _STATUS_REFUSED)
                self._refused(ref, _STATUS_REFUSED)
                return
            setback = self._setbacks.setdefault(ref, _Setback())
            delay = setback.backoff.next()
            setback.due = self._clock() + delay
            logger.info("the status of claim %s is written in %.0f s: %s", ref, delay, error)
        else:
            self._told[ref] = news
            self._setbacks.pop(ref, None)

    def _write(self, ref: ClaimRef, subject: _Subject, cards: Cards) -> None:
        try:
            claim = self._api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return
        # Of a claim that was released nothing is to be told, and the server would refuse it.
        if claim["metadata"]["uid"] != ref.uid or allocation(claim) is None:
            return
        before = (claim.get("status") or {}).get("devices") or []
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        statuses = subject.statuses(cards, before, now=now)
        if statuses == [entry for entry in before if entry["driver"] == DRIVER]:
            return
        body = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid},
            "status": {"devices": statuses},
        }
        self._api.patch(
            RESOURCE_CLAIMS,
            ref.name,
            body,
            namespace=ref.namespace,
            patch_type=PatchType.APPLY,
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )
        logger.info("told in the status of claim %s what it has", ref)


def _concerns_all(error: KubeError) -> bool:
    """Whether the next claim would fare no better. A webhook that is away fails the claims of its
    namespaces with 500."""
    unreachable = isinstance(error, Unavailable) and error.status != 500
    return unreachable or isinstance(error, TooManyRequests)
