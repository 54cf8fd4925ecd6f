"""A new leader's first acts, before it allocates anything.

The previous leader may have written what our watch has not delivered yet, and may still have a
write in hand that reaches the server after ours. So the versions of all claims are listed, and
those that differ from the cache are read. Then each claim that nobody has allocated gets our term:
a write over an earlier version meets a conflict. Claims that come later cannot have been seen by
the previous leader before its lease ended, and its fence holds their writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from controller.allocator.ownership import is_ours
from controller.cache.cache import ClusterCache, Isolate, is_newer
from controller.cache.keys import Key
from controller.leaderelection.fence import Fence
from controller.queue.event_queue import EventQueue, ResourceEvent
from controller.write.commands import ReadClaim, WriteTerm
from controller.write.dispatcher import WriteDispatcher
from dra_driver.kube.api import Api, Change
from dra_driver.kube.decode import Typed
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.names import ANNOTATION_TERM
from dra_driver.selector.allowance import AllowanceSpent
from dra_driver.util.collection import no_collection

logger = logging.getLogger(__name__)

# Of this very write (HTTP): validation, or admission, whose webhooks choose among all four. A
# conflict with another version is no refusal: `Writer.fence` goes on from there. A claim that
# is too large with the term (413) is so with an allocation, which takes more.
_REFUSALS: Final = frozenset({400, 403, 409, 413, 422})


class _Metadata(TypedDict, total=False):
    namespace: str
    name: str
    resourceVersion: str


class _Version(TypedDict, total=False):
    metadata: _Metadata


VERSIONS: Final = Typed(_Version)
"""All that is read of a claim of the list: another one of its name has a later version."""


@dataclass(slots=True)
class PreviousLeaderFence:
    """`isolate` ends what fails with one claim."""

    api: Api
    dispatcher: WriteDispatcher
    fence: Fence
    events: EventQueue
    cache: ClusterCache
    isolate: Isolate
    _fenced: str | None = None

    def is_complete(self) -> bool:
        """Whether the previous leader of the present term was fenced."""
        return self._fenced == self.fence.term

    def fence_previous_leader(self) -> None:
        """What was read and written is in the event queue afterwards. Raises GcuError: try again;
        what is marked already is not marked twice."""
        term = self.fence.accept()
        current = self._current_claims()
        self.cache.state().selectors.allowance.begin()  # for all of them together
        unmarked = [claim for claim in current if self._is_open(claim) and _term_of(claim) != term]
        self._write_term(unmarked, term)
        self._fenced = term
        logger.info("term %s begins: %d unallocated claims marked", term, len(unmarked))

    def _current_claims(self) -> list[Object]:
        """All claims, none older than the server had it when this was called."""
        with no_collection():
            listed = self.api.list_metadata(RESOURCE_CLAIMS, decoder=VERSIONS).items
        current: list[Object] = []
        outdated: list[ReadClaim] = []
        for each in listed:
            key = Key.of_claim(each)
            claim = self.cache.get(key)
            if claim is None or is_newer(each, claim):
                outdated.append(ReadClaim(key))
            else:
                current.append(claim)
        logger.info("of %d claims, %d differ from the cache", len(listed), len(outdated))
        for answer in self.dispatcher.execute_all(outdated):
            if answer.error is not None and not isinstance(answer.error, NotFound):
                raise answer.error
            self._learn(answer.claims)
            current += answer.claims
        return current

    def _is_open(self, claim: Object) -> bool:
        with self.isolate(RESOURCE_CLAIMS, claim):
            try:
                return allocation(claim) is None and is_ours(claim, self.cache.state())
            except Refused:
                pass  # it mixes drivers
            except AllowanceSpent:
                return True  # unknown; to mark it harms nobody
        return False  # no leader allocates it

    def _write_term(self, claims: Sequence[Object], term: str) -> None:
        """Raises, after all were tried, an error for which all are to be tried again."""
        failed: GcuError | None = None
        answers = self.dispatcher.execute_all(WriteTerm(claim, term) for claim in claims)
        for claim, answer in zip(claims, answers, strict=True):
            self._learn(answer.claims)
            match answer.error:
                case None | NotFound():
                    continue
                case KubeError(status=status) as error if status in _REFUSALS:
                    # Its annotations are full, perhaps, or a policy of its namespace forbids every
                    # change of it. Nobody's claim may keep all others waiting.
                    logger.warning("claim %s carries no term: %s", ClaimRef.of(claim), error)
                case GcuError() as error:
                    failed = error
                case fault:
                    with self.isolate(RESOURCE_CLAIMS, claim):
                        raise fault
        if failed is not None:
            raise failed

    def _learn(self, claims: Iterable[Object]) -> None:
        for claim in claims:
            self.events.put(ResourceEvent(RESOURCE_CLAIMS, Change.MODIFIED, claim))


def _term_of(claim: Object) -> str | None:
    found: str | None = (claim["metadata"].get("annotations") or {}).get(ANNOTATION_TERM)
    return found
