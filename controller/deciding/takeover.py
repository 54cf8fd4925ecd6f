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
from controller.deciding.writer import ClaimWriter
from controller.leadership.fence import Fence
from controller.work.inbox import Event, Inbox
from dra_driver.kube.api import Api, Change, Keep, whole
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claim import ClaimRef, Object, allocation
from dra_driver.model.errors import Refused
from dra_driver.model.names import ANNOTATION_TERM

logger = logging.getLogger(__name__)

# Of this very write (HTTP): validation, or admission, whose webhooks choose among all four. A
# conflict with another version is no refusal: `ClaimWriter.fence` goes on from there.
_REFUSALS: Final = frozenset({400, 403, 409, 422})

ForEach = Callable[[Callable[[Object], None], Iterable[Object]], None]


class Takeover:
    """`for_each` calls a function for every item, several at a time where that is allowed; `keep`
    gives what is kept of a claim."""

    def __init__(
        self,
        *,
        api: Api,
        writer: ClaimWriter,
        fence: Fence,
        inbox: Inbox,
        state: State,
        for_each: ForEach,
        keep: Keep = whole,
    ) -> None:
        self._api = api
        self._writer = writer
        self._fence = fence
        self._inbox = inbox
        self._state = state
        self._for_each = for_each
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
        open_claims = [
            claim for claim in listed if self._is_open(claim) and _term_of(claim) != term
        ]
        self._for_each(lambda claim: self._mark(claim, term), open_claims)
        self._done = term
        logger.info("term %s begins: %d unallocated claims marked", term, len(open_claims))

    def _is_open(self, claim: Object) -> bool:
        if allocation(claim) is not None:
            return False
        try:
            return is_ours(claim, self._state)
        except Refused:
            return False  # it mixes drivers, and no leader allocates it

    def _mark(self, claim: Object, term: str) -> None:
        try:
            self._learn(self._writer.fence(claim, term))
        except NotFound:
            return
        except KubeError as error:
            # Its annotations are full, perhaps, or a policy of its namespace forbids every change
            # of it. Nobody's claim may keep all others waiting.
            if error.status not in _REFUSALS:
                raise
            logger.warning("claim %s carries no term: %s", ClaimRef.of(claim), error)

    def _learn(self, claim: Object) -> None:
        self._inbox.put(Event(RESOURCE_CLAIMS, Change.MODIFIED, claim))


def _term_of(claim: Object) -> str | None:
    found: str | None = (claim["metadata"].get("annotations") or {}).get(ANNOTATION_TERM)
    return found
