"""Claims of the journal that neither the API server nor the kubelet has, as after ``kubeadm
reset``: nobody would ever unprepare them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from dra_driver.agent.prepared_claims import current, unlisted
from dra_driver.kube.errors import KubeError
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger
from dra_driver.node.ports import ObjectReader
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

FORGOTTEN_AFTER: Final = 300.0
"""Seconds. A kubelet that has just started does not list the pods that run before it has read them
from the API server."""


class Unprepare(Protocol):
    """`dra_driver.node.claims.manager.PreparedClaimManager.unprepare`."""

    def __call__(self, owner: ClaimRef, /) -> None: ...


class ForgottenClaims:
    """Unprepares claims that are in the journal's `ledger`, that the API server has no more, and
    that the kubelet lists for no container, all for five minutes."""

    def __init__(
        self,
        api: ObjectReader,
        *,
        ledger: Callable[[], Ledger],
        unprepare: Unprepare,
        clock: Clock = time.monotonic,
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._unprepare = unprepare
        self._clock = clock
        self._since: dict[ClaimRef, float] = {}

    def release(self, containers: Iterable[ContainerResources]) -> list[ClaimRef]:
        """Unprepare the claims that are forgotten for long enough; `containers` are the kubelet's,
        as it lists them now. Returns those that were unprepared; the others are tried again. Raises
        JournalError."""
        now, ledger = self._clock(), self._ledger()
        forgotten = [
            ref
            for ref in unlisted(ledger, containers)
            if ledger.claims[ref.uid].state is not ClaimState.PREPARE_STARTED and self._is_gone(ref)
        ]
        self._since = {ref: self._since.get(ref, now) for ref in forgotten}
        released = []
        for ref, since in self._since.items():
            if now - since < FORGOTTEN_AFTER:
                continue
            try:
                self._unprepare(ref)
            except GcuError as error:
                logger.warning("claim %s, which is forgotten, stays prepared: %s", ref, error)
            else:
                released.append(ref)
        return released

    def _is_gone(self, ref: ClaimRef) -> bool:
        """Whether the API server says that it has the claim no more."""
        try:
            return current(self._api, ref) is None
        except KubeError as error:
            logger.info("whether claim %s exists is unknown: %s", ref, error)
            return False
