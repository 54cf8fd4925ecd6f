"""Writes ``status.devices`` of claims: card, index, minor and DRS instance of each device.

It is written after the kubelet has its answer, and again when a card's health or minor changes.
Nothing waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from dra_driver.agent.sources import CardSource, LedgerSource
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.errors import Invalid, KubeError, NotFound, TooManyRequests, Unavailable
from dra_driver.kube.events import Now
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.card import Card
from dra_driver.model.claims.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER, FIELD_MANAGER
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import ProfileTableOf
from dra_driver.node.checkpoint.ledger import ClaimState
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.claims.device_status import device_statuses
from dra_driver.node.claims.failures import Waiting
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)


Cards = Mapping[PciAddress, Card]

_IMMUTABLE: Final = "status.allocation: Invalid value"
"""The API server's message if it takes a patch of the status for a change of the allocation."""
_REJECTED: Final = (
    "status.devices cannot show the claim's devices: its allocation has opaque parameters that are "
    "not written as the API server writes JSON (white space, order of keys, escapes, numbers), so "
    "the API server rejects every patch of its status. The claim works. Claims that "
    "gcu-dra-controller allocates from now on show their devices"
)


@dataclass(slots=True)
class _Retry:
    """When the status of a claim, which could not be written, is written again."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    due: float = 0.0


@dataclass(frozen=True, slots=True)
class _Content:
    """What a claim's status shows: its devices, or why it has none."""

    devices: tuple[PreparedDevice, ...]
    failure: str = ""

    def statuses(
        self,
        cards: Cards,
        before: Sequence[Mapping[str, Any]] = (),
        *,
        table: ProfileTableOf,
        now: str = "",
    ) -> Sequence[Object]:
        """As `device_statuses`."""
        return device_statuses(
            self.devices, cards, before, table=table, failure=self.failure, now=now
        )


class OnStatusRejected(Protocol):
    """Called once for a claim whose status can never be written; `note` says why."""

    def __call__(self, claim: ClaimRef, note: str, /) -> None: ...


class ClaimStatuses(Background):
    """Writes the status of the claims that are prepared in `ledger`, and of the `waiting` claims,
    whose prepare fails, in its own thread, whenever it is woken.

    While `cards` is None nothing is written. The API server keeps the entries of other drivers,
    and drops this driver's when the claim is deallocated.
    """

    def __init__(
        self,
        api: Api,
        *,
        ledger: LedgerSource,
        cards: CardSource,
        table: ProfileTableOf,
        waiting: Callable[[], Mapping[str, Waiting]] = dict,
        on_rejected: OnStatusRejected = lambda _claim, _note: None,
        backoff: Backoff | None = None,
        now: Now = lambda: datetime.now(UTC),
        clock: Clock = time.monotonic,
        wait: Wait | None = None,
    ) -> None:
        """`wait(seconds)` sleeps, and returns True when the writer was stopped."""
        super().__init__("claim-status", wait=wait, interrupt=self.wake)
        self._api = api
        self._ledger = ledger
        self._cards = cards
        self._table = table
        self._waiting = waiting
        self._on_rejected = on_rejected
        self._backoff = backoff or Backoff(first=1.0, longest=60.0)
        self._now = now
        self._clock = clock
        self._written: dict[ClaimRef, Sequence[Object]] = {}
        self._retries: dict[ClaimRef, _Retry] = {}
        self._unwritable: set[ClaimRef] = set()
        self._woken = threading.Event()

    def start(self) -> None:
        self._woken.set()
        super().start()

    def wake(self) -> None:
        """A claim was prepared or unprepared, or a card has changed: write what differs."""
        self._woken.set()

    def run(self) -> None:
        pause: float | None = None
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._stopped.is_set():
                return
            try:
                pause = self.write()
            except GcuError as error:
                log = logger.info if isinstance(error, KubeError) else logger.warning
                log("the status of claims is written later: %s", error)
                if self._wait(self._backoff.next()):
                    return
                self._woken.set()
            else:
                self._backoff.reset()

    def write(self) -> float | None:
        """Write each status that has changed. Returns the seconds until the next retry, or None.

        If a write fails, the other claims are written all the same, and a later call retries it.
        A claim of which the API server rejects every patch is not retried. Raises JournalError;
        Unavailable at once if the server does not answer; TooManyRequests.
        """
        cards = self._cards()
        if cards is None:
            return None
        held = self._contents()
        self._written = {ref: written for ref, written in self._written.items() if ref in held}
        self._retries = {ref: retry for ref, retry in self._retries.items() if ref in held}
        self._unwritable &= held.keys()
        for ref, content in held.items():
            if ref in self._unwritable:
                continue
            statuses = content.statuses(cards, table=self._table)
            if self._written.get(ref) == statuses:
                self._retries.pop(ref, None)
            elif self._is_due(ref):
                self._attempt(ref, content, cards, statuses)
        now = self._clock()
        return min((max(0.0, each.due - now) for each in self._retries.values()), default=None)

    def _contents(self) -> dict[ClaimRef, _Content]:
        prepared = {
            held.owner: _Content(held.devices)
            for held in self._ledger().claims.values()
            if held.state is ClaimState.PREPARE_COMPLETED and isinstance(held.owner, ClaimRef)
        }
        return prepared | {
            each.owner: _Content(each.devices, each.reason)
            for each in self._waiting().values()
            if isinstance(each.owner, ClaimRef)
        }

    def _is_due(self, ref: ClaimRef) -> bool:
        retry = self._retries.get(ref)
        return retry is None or self._clock() >= retry.due

    def _attempt(
        self, ref: ClaimRef, content: _Content, cards: Cards, statuses: Sequence[Object]
    ) -> None:
        try:
            self._write(ref, content, cards)
        except KubeError as error:
            if _concerns_all(error):
                raise
            if isinstance(error, Invalid) and _IMMUTABLE in str(error):
                self._unwritable.add(ref)
                self._retries.pop(ref, None)
                logger.warning("claim %s: %s", ref, _REJECTED)
                self._on_rejected(ref, _REJECTED)
                return
            retry = self._retries.setdefault(ref, _Retry())
            delay = retry.backoff.next()
            retry.due = self._clock() + delay
            logger.info("the status of claim %s is written again in %.0f s: %s", ref, delay, error)
        else:
            self._written[ref] = statuses
            self._retries.pop(ref, None)

    def _write(self, ref: ClaimRef, content: _Content, cards: Cards) -> None:
        try:
            claim = self._api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return
        # A deallocated claim has no devices, and the server would reject the patch.
        if claim["metadata"]["uid"] != ref.uid or allocation(claim) is None:
            return
        before = (claim.get("status") or {}).get("devices") or []
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        statuses = content.statuses(cards, before, table=self._table, now=now)
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
        logger.info("wrote the devices into the status of claim %s", ref)


def _concerns_all(error: KubeError) -> bool:
    """Whether the write of the next claim would fail, too. A webhook that does not answer fails
    the claims of its namespaces alone, with 500."""
    unreachable = isinstance(error, Unavailable) and error.status != 500
    return unreachable or isinstance(error, TooManyRequests)
