"""Prepared claims that the API server has given up: their cards, who waits for these, and claims
that the kubelet has forgotten as well.

That is so after a claim or its pods were deleted by force: Kubernetes counts the devices as free at
once, and the kubelet unprepares the claim when its containers have ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Final

from dra_driver.agent.context import AgentContext
from dra_driver.kube.errors import KubeError, NotFound, concerns_all
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.kubelet_api.dra.service import ClaimHandler
from dra_driver.model.claims.claim import ClaimRef, Object, allocation
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import DeviceHeld, GcuError
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import ClaimStep
from dra_driver.node.claim_reader import Pause
from dra_driver.util.background import Background, Wait
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_INTERVAL: Final = 5.0
"""Seconds between two looks at the kubelet's list, which is a call on the node."""

_ASK_AGAIN: Final = 30.0
"""Seconds until the API server is asked again about a claim that was allocated: ended init
containers, which the kubelet does not list, may use it for long."""

FORGOTTEN_AFTER: Final = 300.0
"""Seconds. A kubelet that has just started does not list the pods that run before it has read them
from the API server."""

# The kubelet gives a call up after 45 s, and repeats it 60 to 90 s later. Containers that ignore
# SIGTERM end after 30 s by default; the rest is for the prepare.
_PATIENCE: Final = 32.0  # seconds
_LOOK_EVERY: Final = 0.25  # seconds


@dataclass(eq=False)
class DeletedClaimDetector(Background):
    """Looks every few seconds in its own thread, and when it is asked. Thread-safe. When
    `cards` may have changed, it calls `AgentContext.on_change`.

    The API server is asked about claims alone that no container of the kubelet's list uses, and
    rarely while they are allocated. So a node whose pods run asks nothing.
    """

    context: AgentContext
    _: KW_ONLY
    clock: Clock = time.monotonic
    wait: InitVar[Wait | None] = None

    def __post_init__(self, wait: Wait | None) -> None:
        super().__init__("deleted-claims", wait=wait)
        self._ask_at: dict[str, float] = {}  # by UID, of claims that were allocated
        self._mutex = threading.Lock()
        self._deleted: frozenset[str] = frozenset()
        self._gone_since: dict[ClaimRef, float] = {}

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
            unused = self._unlisted()
            now, later, before = self.clock(), self._ask_at, self._deleted
            answers = {
                owner: self._ask(owner, now)
                for owner in unused
                if owner.uid in at_once or now >= later.get(owner.uid, now)
            }
            self._ask_at = {
                owner.uid: self._ask_at[owner.uid]
                for owner in unused
                if owner.uid in self._ask_at and not answers.get(owner, (False, None))[0]
            }
            self._deleted = frozenset(
                owner.uid for owner, (is_given_up, _) in answers.items() if is_given_up
            )
            self._gone_since = {
                owner: since for owner, (_, since) in answers.items() if since is not None
            }
        for owner in unused:
            if owner.uid in self._deleted - before:
                logger.warning("%s is prepared, and Kubernetes has given it up", owner.title)
        if self._deleted != before:
            self.context.on_change()

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
        claims = self._claims()
        held = (claims[uid].cards for uid in self._deleted if uid in claims)
        return frozenset[PciAddress]().union(*held)

    def forgotten(self) -> list[ClaimRef]:
        """The claims that the API server has no more, and that the kubelet lists for no container,
        all for five minutes. As after ``kubeadm reset``: nobody would ever unprepare them. None
        where that is unknown. Raises JournalError."""
        claims = self._claims()
        if not self.deleted_among(claims.keys()):
            return []
        now = self.clock()
        return [
            ref
            for ref, since in self._gone_since.items()
            if now - since >= FORGOTTEN_AFTER
            and ref.uid in claims
            and claims[ref.uid].state is not ClaimStep.PREPARE_STARTED
        ]

    def _ask(self, owner: ClaimRef, now: float) -> tuple[bool, float | None]:
        """Whether the claim is given up, and since when the API server has it no more. Both as
        before where the server cannot give this one claim. Raises KubeError if it gives none."""
        since = self._gone_since.get(owner)
        try:
            claim = self._current(owner)
        except KubeError as error:
            if concerns_all(error):
                raise
            logger.info("whether %s was deleted is unknown: %s", owner.title, error)
            return owner.uid in self._deleted, since
        if claim is None:
            return True, now if since is None else since
        return not self._is_allocated(owner, claim), None

    def _current(self, ref: ClaimRef) -> Object | None:
        """The claim as the API server has it, None if that has it no more. Raises KubeError."""
        try:
            claim = self.context.api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return None
        return claim if claim["metadata"]["uid"] == ref.uid else None

    def _is_allocated(self, owner: ClaimRef, claim: Object) -> bool:
        """Whether the claim has devices. One without pods may have been deallocated, and is
        prepared all the same."""
        if allocation(claim) is None:
            return False
        self._ask_at[owner.uid] = self.clock() + _ASK_AGAIN
        return True

    def _claims(self) -> Mapping[str, PreparedClaim]:
        return self.context.journal.snapshot().claims

    def _unlisted(self) -> list[ClaimRef]:
        """The claims of the journal that no container of the kubelet's list is sure to use. The
        kubelet lists claims by name. If two prepared claims have one name, only the API server
        knows which one still exists. Without claims the kubelet is not asked."""
        owners = (held.owner for held in self._claims().values())
        refs = [owner for owner in owners if isinstance(owner, ClaimRef)]
        if not refs:
            return []
        containers = self.context.kubelet.containers()
        listed = {(each.namespace, claim) for each in containers for claim in each.claims}
        names = Counter((ref.namespace, ref.name) for ref in refs)
        return [
            ref
            for ref in refs
            if (ref.namespace, ref.name) not in listed or names[ref.namespace, ref.name] > 1
        ]


@dataclass(frozen=True, slots=True)
class PatientHandler:
    """`handler`, whose prepare is repeated once if deleted claims are in its way and they are
    unprepared in time. Otherwise the kubelet would repeat it a minute later. `deleted_among`
    returns those of the UIDs whose claims Kubernetes has given up; it does not raise."""

    handler: ClaimHandler
    ledger: Callable[[], Ledger]
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
        end = self.clock() + _PATIENCE
        while deleted & self.ledger().claims.keys():
            if self.clock() >= end or is_cancelled():
                return results
            self.pause(_LOOK_EVERY)
        return self.handler.prepare(refs, is_cancelled=is_cancelled)

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        """As `ClaimHandler`."""
        return self.handler.unprepare(refs)
