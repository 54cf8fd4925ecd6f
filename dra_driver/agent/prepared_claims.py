"""The claims that this node has prepared, compared with what kubelet and API server say."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from dra_driver.agent.sources import LedgerSource
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger
from dra_driver.node.ports import ObjectReader
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

FORGOTTEN_AFTER: Final = 300.0
"""Seconds. A kubelet that has just started does not list the pods that run before it has read them
from the API server."""


def unlisted(ledger: Ledger, containers: Iterable[ContainerResources]) -> list[ClaimRef]:
    """The claims of the journal that no container of the kubelet's list is sure to use. The kubelet
    lists names: of two prepared claims of one name it has one, and only the API server can tell
    which."""
    refs = [held.owner for held in ledger.claims.values() if isinstance(held.owner, ClaimRef)]
    if not refs:
        return []
    listed = {(each.namespace, claim) for each in containers for claim in each.claims}
    names = Counter((ref.namespace, ref.name) for ref in refs)
    return [
        ref
        for ref in refs
        if (ref.namespace, ref.name) not in listed or names[ref.namespace, ref.name] > 1
    ]


def current(api: ObjectReader, ref: ClaimRef) -> Object | None:
    """The claim as the API server has it, None if that has it no more. Raises KubeError."""
    try:
        claim = api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
    except NotFound:
        return None
    return claim if claim["metadata"]["uid"] == ref.uid else None


@dataclass(slots=True, eq=False)
class UnknownClaimDetector:
    """Finds claims of running containers that the journal's `ledger` does not have: its records
    were lost, and the CDI files with them."""

    ledger: LedgerSource
    _before: Collection[str] = field(init=False, default=())

    def detect(self, containers: Iterable[ContainerResources]) -> list[str]:
        """Claims as ``namespace/name``, sorted, that were unknown at the last call, too: one
        that ends is forgotten by the kubelet a moment after the journal. `containers` were listed
        before the call: a claim is in the journal before the kubelet has it. Raises
        JournalError."""
        used = {f"{each.namespace}/{claim}" for each in containers for claim in each.claims}
        owners = [held.owner for held in self.ledger().claims.values()]
        known = {f"{each.namespace}/{each.name}" for each in owners if isinstance(each, ClaimRef)}
        before, self._before = self._before, used - known
        return sorted(self._before & set(before))


@dataclass(slots=True, eq=False)
class ForgottenClaims:
    """Unprepares claims that are in the journal's `ledger`, that the API server has no more, and
    that the kubelet lists for no container, all for five minutes. As after ``kubeadm reset``:
    nobody else would ever unprepare them."""

    api: ObjectReader
    _: KW_ONLY
    ledger: LedgerSource
    unprepare: Callable[[ClaimRef], None]
    clock: Clock = time.monotonic
    _since: dict[ClaimRef, float] = field(init=False, default_factory=dict)

    def release(self, containers: Iterable[ContainerResources]) -> list[ClaimRef]:
        """Unprepare the claims that are forgotten for long enough; `containers` are the kubelet's,
        as it lists them now. Returns those that were unprepared; the others are tried again. Raises
        JournalError."""
        now, ledger = self.clock(), self.ledger()
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
                self.unprepare(ref)
            except GcuError as error:
                logger.warning("claim %s, which is forgotten, stays prepared: %s", ref, error)
            else:
                released.append(ref)
        return released

    def _is_gone(self, ref: ClaimRef) -> bool:
        """Whether the API server says that it has the claim no more."""
        try:
            return current(self.api, ref) is None
        except KubeError as error:
            logger.info("whether claim %s exists is unknown: %s", ref, error)
            return False
