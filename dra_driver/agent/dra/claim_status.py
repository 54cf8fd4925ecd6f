"""Writes ``status.devices`` of claims: card, index, minor and DRS instance of each device.

It is written after the kubelet has its answer, and again when a card's health or minor changes.
Nothing waits for it. An admission webhook may hold up each write of its namespaces for half a
minute, so the namespaces are written side by side.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec

from dra_driver.agent.context import AgentContext
from dra_driver.kube.api import apply_status
from dra_driver.kube.errors import (
    Invalid,
    KubeError,
    NotFound,
    concerns_all,
)
from dra_driver.kube.events import Now
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.card import Cards
from dra_driver.model.claims.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER, FIELD_MANAGER
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevices
from dra_driver.node.claims.device_status import device_statuses
from dra_driver.util.background import Wait, Woken
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_IMMUTABLE: Final = "status.allocation: Invalid value"
"""The API server's message if it takes a patch of the status for a change of the allocation."""
_REJECTED: Final = (
    "status.devices cannot show the claim's devices: its allocation has opaque parameters that are "
    "not written as the API server writes JSON (white space, order of keys, escapes, numbers), so "
    "the API server rejects every patch of its status. The claim works. Claims that "
    "gcu-dra-controller allocates from now on show their devices"
)


_NAMESPACES_AT_ONCE: Final = 8
"""Each has a thread while its claims are written."""


@dataclass(slots=True)
class _Retry:
    """When a claim, or a namespace of which no claim could be written, is tried again."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    due: float = 0.0


_Statuses = Callable[..., Sequence[Object]]
"""`device_statuses` of a claim, by the cards, the previous statuses and the time."""


class _Due(msgspec.Struct, frozen=True):
    """A claim whose status has to be written: `statuses` as they are to be."""

    ref: ClaimRef
    content: _Statuses
    statuses: Sequence[Object]


Spawn = Callable[[Callable[[], None]], object]
"""Runs the work in a thread of its own."""


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="claim-status-writes", daemon=True).start()


@dataclass(eq=False)
class ClaimStatuses(Woken):
    """Writes the status of the claims that are prepared in the journal, and of the waiting claims,
    whose prepare fails, whenever it is woken. The claims of one namespace are written one after the
    other, up to eight namespaces at a time.

    Nothing is written before the cards were read. The API server keeps the entries of other
    drivers, and drops this driver's when the claim is deallocated.
    """

    context: AgentContext
    _: KW_ONLY
    now: Now = lambda: datetime.now(UTC)
    clock: Clock = time.monotonic
    wait: InitVar[Wait | None] = None
    spawn: Spawn = _in_thread

    def __post_init__(self, wait: Wait | None) -> None:
        super().__init__("claim-status", wait=wait)
        self._backoff = Backoff(first=1.0, longest=60.0)
        self._lock = threading.Lock()  # for what follows
        self._written: dict[ClaimRef, Sequence[Object]] = {}
        self._retries: dict[ClaimRef | str, _Retry] = {}  # by claim or namespace
        self._unwritable: set[ClaimRef] = set()
        self._busy: set[str] = set()  # namespaces whose claims are being written

    def run(self) -> None:
        pause: float | None = 0.0
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._stopped.is_set():
                return
            try:
                pause = self.write()
            except GcuError as error:
                logger.warning("the status of claims is written later: %s", error)
                if self._wait(self._backoff.next()):
                    return
                self.wake()
            else:
                self._backoff.reset()

    def write(self) -> float | None:
        """Begin to write each status that has changed. Returns the seconds until the next retry, or
        None.

        A claim that cannot be written keeps no other waiting, and a namespace no other namespace;
        a later call retries it. A claim of which the API server rejects every patch is not retried.
        Raises JournalError.
        """
        cards = self.context.cards.latest
        if cards is None:
            return None
        held, now = self._contents(), self.clock()
        with self._lock:
            due = self._due(held, cards, now)
            begun = list(due)[: _NAMESPACES_AT_ONCE - len(self._busy)]
            self._busy.update(begun)
        for namespace in begun:
            self.spawn(partial(self._write_namespace, namespace, due[namespace], cards))
        with self._lock:
            # What is due already waits for a namespace that is being written, whose end wakes us.
            later = (each.due for each in self._retries.values() if each.due > now)
            return min((due_at - now for due_at in later), default=None)

    def _due(
        self, held: Mapping[ClaimRef, _Statuses], cards: Cards, now: float
    ) -> dict[str, list[_Due]]:
        """What is to be written, by namespace, without namespaces that are being written."""
        names = {ref.namespace for ref in held}
        known = held.keys() | names
        self._written = {ref: written for ref, written in self._written.items() if ref in held}
        self._retries = {key: retry for key, retry in self._retries.items() if key in known}
        self._unwritable &= held.keys()
        due: dict[str, list[_Due]] = {}
        for ref, content in held.items():
            if ref in self._unwritable or ref.namespace in self._busy:
                continue
            statuses = content(cards, now="")
            if self._written.get(ref) == statuses:
                self._retries.pop(ref, None)
            elif self._is_due(ref, now) and self._is_due(ref.namespace, now):
                due.setdefault(ref.namespace, []).append(_Due(ref, content, statuses))
        for namespace in names - self._busy - due.keys():
            if self._is_due(namespace, now):
                self._retries.pop(namespace, None)  # nothing of it is to be written any more
        return due

    def _write_namespace(self, namespace: str, due: Sequence[_Due], cards: Cards) -> None:
        try:
            for claim in due:
                if self._stopped.is_set():
                    return
                self._attempt(claim, cards)
        except KubeError as error:
            delay = self._retry(namespace, at_least=error.retry_after or 0.0)
            text = "the status of the claims of namespace %s is written again in %.0f s: %s"
            logger.info(text, namespace, delay, error)
        else:
            with self._lock:
                self._retries.pop(namespace, None)
        with self._lock:
            self._busy.discard(namespace)
        self.wake()  # the claims may have changed meanwhile, and other namespaces may wait

    def _contents(self) -> dict[ClaimRef, _Statuses]:
        prepared = {
            held.owner: self._statuses(held.devices)
            for held in self.context.journal.snapshot().claims.values()
            if held.state is ClaimStep.PREPARE_COMPLETED and isinstance(held.owner, ClaimRef)
        }
        return prepared | {
            each.owner: self._statuses(each.devices, each.reason)
            for each in self.context.failures.waiting().values()
            if isinstance(each.owner, ClaimRef)
        }

    def _statuses(self, devices: PreparedDevices, failure: str = "") -> _Statuses:
        return partial(device_statuses, devices, table=self.context.tables.table, failure=failure)

    def _is_due(self, key: ClaimRef | str, now: float) -> bool:
        retry = self._retries.get(key)
        return retry is None or now >= retry.due

    def _retry(self, key: ClaimRef | str, *, at_least: float = 0.0) -> float:
        """Have it tried again after so many seconds."""
        with self._lock:
            retry = self._retries.setdefault(key, _Retry())
            delay = max(at_least, retry.backoff.next())
            retry.due = self.clock() + delay
        return delay

    def _attempt(self, due: _Due, cards: Cards) -> None:
        """Raises KubeError where the next claim would fail, too."""
        ref = due.ref
        try:
            self._write(ref, due.content, cards)
        except KubeError as error:
            if concerns_all(error):
                raise
            if isinstance(error, Invalid) and _IMMUTABLE in str(error):
                with self._lock:
                    self._unwritable.add(ref)
                    self._retries.pop(ref, None)
                logger.warning("claim %s: %s", ref, _REJECTED)
                self.context.event_reporter.status_rejected(ref, _REJECTED)
                return
            delay = self._retry(ref)
            logger.info("the status of claim %s is written again in %.0f s: %s", ref, delay, error)
        else:
            with self._lock:
                self._written[ref] = due.statuses
                self._retries.pop(ref, None)

    def _write(self, ref: ClaimRef, content: _Statuses, cards: Cards) -> None:
        try:
            claim = self.context.api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return
        # A deallocated claim has no devices, and the server would reject the patch.
        if claim["metadata"]["uid"] != ref.uid or allocation(claim) is None:
            return
        before = (claim.get("status") or {}).get("devices") or []
        now = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        statuses = content(cards, before, now=now)
        if statuses == [entry for entry in before if entry["driver"] == DRIVER]:
            return
        metadata = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid}
        fields = {"metadata": metadata, "status": {"devices": statuses}}
        apply_status(self.context.api, RESOURCE_CLAIMS, fields, FIELD_MANAGER)
        logger.info("wrote the devices into the status of claim %s", ref)
