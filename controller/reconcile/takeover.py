"""A new leader's first acts, before it grants anything.

The leader before it may have written what our watch has not told yet, and may still have a write
in hand that reaches the server after ours. So every claim is read anew, and each that nobody has
allocated gets our term: whoever read it before that meets a conflict. Claims that come later
cannot have been seen by the old leader before its lease ended, and its fence holds their writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from controller.allocator.ownership import is_ours
from controller.allocator.state import State
from controller.cache.isolation import Isolate
from controller.leaderelection.fence import Fence
from controller.queue.event_queue import Event, Inbox
from controller.write.claim_writer import ClaimWriter
from dra_driver.kube.api import Api, Change, Keep, whole
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.names import ANNOTATION_TERM
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

# Of this very write (HTTP): validation, or admission, whose webhooks choose among all four. A
# conflict with another version is no refusal: `ClaimWriter.fence` goes on from there. A claim that
# is too large with the term (413) is so with an allocation, which takes more.
_REFUSALS: Final = frozenset({400, 403, 409, 413, 422})

ForEach = Callable[[Callable[[Object], None], Iterable[Object]], None]


class Takeover:
    """`for_each` calls a function for every item, several at a time where that is allowed; `keep`
    gives what is kept of a claim; `isolate` ends what fails with one claim."""

    def __init__(
        self,
        *,
        api: Api,
        writer: ClaimWriter,
        fence: Fence,
        inbox: Inbox,
        state: State,
        for_each: ForEach,
        isolate: Isolate,
        keep: Keep = whole,
    ) -> None:
        self._api = api
        self._writer = writer
        self._fence = fence
        self._inbox = inbox
        self._state = state
        self._for_each = for_each
        self._isolate = isolate
        self._keep = keep
        self._done: str | None = None

    def is_complete(self) -> bool:
        """Whether the present term has begun with all that is to be done first."""
        return self._done == self._fence.term

    def run(self) -> None:
        """What was read and written is in the inbox afterwards. Raises KubeError: try again;
        what is marked already is not marked twice."""
        term = self._fence.accept()
        listed = self._api.list(RESOURCE_CLAIMS, keep=self._keep).items
        for claim in listed:
            self._learn(claim)
        self._state.selectors.allowance.begin()  # for all of them together
        open_claims = [
            claim for claim in listed if self._is_open(claim) and _term_of(claim) != term
        ]
        self._for_each(lambda claim: self._mark(claim, term), open_claims)
        self._done = term
        logger.info("term %s begins: %d unallocated claims marked", term, len(open_claims))

    def _is_open(self, claim: Object) -> bool:
        with self._isolate(RESOURCE_CLAIMS, claim):
            try:
                return allocation(claim) is None and is_ours(claim, self._state)
            except Refused:
                pass  # it mixes drivers
            except AllowanceSpent:
                return True  # nobody knows; to mark it harms nobody
        return False  # no leader allocates it

    def _mark(self, claim: Object, term: str) -> None:
        error: GcuError | None = None
        with self._isolate(RESOURCE_CLAIMS, claim):
            error = self._try_to_mark(claim, term)
        if error is not None:
            raise error

    def _try_to_mark(self, claim: Object, term: str) -> GcuError | None:
        """Gives the error for which the whole takeover is to be tried again."""
        try:
            self._learn(self._writer.fence(claim, term))
        except NotFound:
            return None
        except KubeError as error:
            # Its annotations are full, perhaps, or a policy of its namespace forbids every change
            # of it. Nobody's claim may keep all others waiting.
            if error.status not in _REFUSALS:
                return error
            logger.warning("claim %s carries no term: %s", ClaimRef.of(claim), error)
        except GcuError as error:
            return error
        return None

    def _learn(self, claim: Object) -> None:
        self._inbox.put(Event(RESOURCE_CLAIMS, Change.MODIFIED, claim))


def _term_of(claim: Object) -> str | None:
    found: str | None = (claim["metadata"].get("annotations") or {}).get(ANNOTATION_TERM)
    return found
