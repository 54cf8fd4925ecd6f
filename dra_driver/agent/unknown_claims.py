"""Claims of running containers that the journal does not have: its records were lost, and the CDI
files with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.checkpoint.ledger import Ledger


class UnknownClaimDetector:
    """Compares what the kubelet says of its containers with the journal's `ledger`."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._before: Collection[str] = ()

    def detect(self, containers: Iterable[ContainerResources]) -> list[str]:
        """Claims as ``namespace/name``, sorted, that were unknown at the last call, too: one
        that ends is forgotten by the kubelet a moment after the journal. `containers` were listed
        before the call: a claim is in the journal before the kubelet has it. Raises
        JournalError."""
        used = {f"{each.namespace}/{claim}" for each in containers for claim in each.claims}
        owners = [held.owner for held in self._ledger().claims.values()]
        known = {f"{each.namespace}/{each.name}" for each in owners if isinstance(each, ClaimRef)}
        before, self._before = self._before, used - known
        return sorted(self._before & set(before))
