"""What a new leader does before it allocates anything.

Our watch may not have delivered yet what the previous leader wrote, and a write of the previous
leader may still reach the server after ours. So the new leader lists the versions of all claims and
reads the claims that differ from its cache. Then it writes its term into each unallocated claim of
ours: a write over an earlier version gets a conflict. The previous leader cannot write later claims
either: it did not know them before its lease ended, and then its fence is closed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from controller.allocating.claim_writer import ClaimWriter
from controller.allocator.ownership import is_ours
from controller.cache.cache import ClusterCache, Isolate, is_newer
from controller.cache.keys import Key
from controller.leaderelection.fence import Fence
from controller.queue.event_queue import EventQueue, ResourceEvent
from dra_driver.kube.api import Api, Change
from dra_driver.kube.decode import Typed
from dra_driver.kube.errors import KubeError, NotFound, Unavailable
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.names import ANNOTATION_TERM
from dra_driver.selector.allowance import AllowanceSpent
from dra_driver.util.collection import no_collection

logger = logging.getLogger(__name__)

# HTTP status of a refused write: by validation, or by admission, whose webhooks choose among all of
# these. `ClaimWriter.write_term` has handled a conflict with another version. A claim that is too
# large with the term (413) is too large with an allocation, too.
_REFUSALS: Final = frozenset({400, 403, 409, 413, 422})

# In answers of 5xx, where an admission webhook is away, or refuses so (1.36.3, `ErrCallingWebhook`,
# `ToStatusErr`). It may be the webhook of one namespace.
_WEBHOOK: Final = re.compile(r"failed calling webhook|admission webhook .* denied the request")
# Seconds until no write of the previous leader can arrive any more that it had sent before its
# lease ended: an API server's --request-timeout.
_PATIENCE: Final = 60.0

VERSIONS: Final = Typed({"metadata": {"namespace": str, "name": str, "resourceVersion": str}})
"""Decodes what is read of each listed claim."""


@dataclass(slots=True)
class PreviousLeaderFence:
    """`pool` executes the reads and writes. `isolate` ends what fails with one claim alone. `clock`
    returns seconds."""

    api: Api
    pool: Executor
    writer: ClaimWriter
    fence: Fence
    events: EventQueue
    cache: ClusterCache
    isolate: Isolate
    clock: Callable[[], float]
    _begun: tuple[str, float] = "", 0.0  # the term, and when its fencing began

    def run(self) -> str:
        """Fence the previous leader; returns the term, which begins. The claims that were read and
        written are in the event queue then. After a GcuError call it again: a claim that has the
        term is not written twice."""
        term = self.fence.accept()
        if self._begun[0] != term:
            self._begun = term, self.clock()
        current = self._current_claims()
        self.cache.state().selectors.allowance.begin()  # for all claims together
        unmarked = [claim for claim in current if self._is_open(claim) and _term_of(claim) != term]
        self._write_term(unmarked, term)
        logger.info("term %s begins: %d unallocated claims marked", term, len(unmarked))
        return term

    def _current_claims(self) -> list[Object]:
        """Claims that may be unallocated, none older than on the server when this was called."""
        with no_collection():
            listed = self.api.list_metadata(RESOURCE_CLAIMS, decoder=VERSIONS).items
        current: list[Object] = []
        outdated: list[Key] = []
        for version in listed:
            key = Key.of_claim(version)
            known = self.cache.get(key)
            if known is None or is_newer(version, known):
                outdated.append(key)
            elif allocation(known) is None:
                current.append(known)
        logger.info("of %d claims, %d differ from the cache", len(listed), len(outdated))
        for claim in self.pool.map(self._read, outdated):
            if claim is not None:
                self._put_event(claim)
                current.append(claim)
        return current

    def _read(self, key: Key) -> Object | None:
        """Returns the claim as the server has it; None if it was deleted."""
        try:
            return self.api.get(RESOURCE_CLAIMS, key.name, namespace=key.namespace)
        except NotFound:
            return None

    def _is_open(self, claim: Object) -> bool:
        """Whether a leader may allocate the claim."""
        with self.isolate(RESOURCE_CLAIMS, claim):
            try:
                return allocation(claim) is None and is_ours(claim, self.cache.state())
            except Refused:
                pass  # it mixes drivers: no leader allocates it
            except AllowanceSpent:
                return True  # unknown; the term does no harm
        return False

    def _write_term(self, claims: Sequence[Object], term: str) -> None:
        """Write the term into each claim. Raises an error after which all are to be tried again,
        when all were tried."""
        failed: GcuError | None = None
        writes = [self.pool.submit(self.writer.write_term, claim, term) for claim in claims]
        for claim, write in zip(claims, writes, strict=True):
            with self.isolate(RESOURCE_CLAIMS, claim):
                try:
                    self._put_event(write.result())
                except NotFound:
                    pass
                except GcuError as error:
                    if self._is_for_good(error):
                        logger.warning("claim %s carries no term: %s", ClaimRef.of(claim), error)
                    else:
                        failed = error
        if failed is not None:
            raise failed

    def _is_for_good(self, error: GcuError) -> bool:
        """Whether the leader begins although this claim carries no term: one tenant's claim must
        not block all others. The server refuses the write, because the claim's annotations are full
        or a policy of its namespace forbids every change. Or a webhook does not let it pass, and
        that for so long that no write of the previous leader can arrive any more."""
        if isinstance(error, Unavailable):
            is_late = self.clock() - self._begun[1] >= _PATIENCE
            return is_late and _WEBHOOK.search(str(error)) is not None
        return isinstance(error, KubeError) and error.status in _REFUSALS

    def _put_event(self, claim: Object) -> None:
        self.events.put(ResourceEvent(RESOURCE_CLAIMS, Change.MODIFIED, claim))


def _term_of(claim: Object) -> str | None:
    term: str | None = (claim["metadata"].get("annotations") or {}).get(ANNOTATION_TERM)
    return term
