"""Members counted as placed while the next one is placed, until that is undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.state import State
from controller.cache.keys import uid_of
from controller.groups.request import Placement, with_claims
from controller.placer.candidates import Candidates
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing


class GroupCluster(Protocol):
    """What a group is placed on: `controller.cache.cache.ClusterCache`."""

    def state(self) -> State: ...

    def assume(self, claim: Object, /) -> None: ...

    def forget(self, claim: Object, /) -> None: ...

    def allocated_share(self, nodes: NodeSet, more: Mapping[str, int], /) -> int: ...


class Trial:
    """`placements` are counted as allocated, on the nodes `used`. One thread."""

    def __init__(self, cluster: GroupCluster, placer: Placer) -> None:
        self._cluster = cluster
        self._placer = placer
        self._allocated: dict[str, Object] = {}  # by UID of the claim
        self.placements: list[Placement] = []
        self.used: NodeSet = 0

    def place(
        self,
        asked: PodClaims,
        within: NodeSet,
        *,
        last: tuple[NodeSet, ...] = (),
        packing: Packing | None = None,
    ) -> Placed | Unplaced:
        """Where the member fits beside those that are placed. Nothing is counted. Raises
        AllowanceSpent."""
        candidates = Candidates(within=within, last=last, packing=packing, may_preempt=False)
        return self._placer.place(with_claims(asked, self._allocated), candidates)

    def put(self, asked: PodClaims, placed: Placed) -> None:
        """Count the member as placed so."""
        state = self._cluster.state()
        claims = placed.claims(state.classes, timestamp="")
        for claim in claims:
            self._allocated[uid_of(claim)] = claim
            self._cluster.assume(claim)
        self.placements.append(Placement(asked.pod, placed.node, tuple(claims)))
        self.used |= state.numbers.bit(placed.node)

    def take_back(self, node: str) -> None:
        """Count the members on the node as not placed."""
        gone = [each for each in self.placements if each.node == node]
        for claim in (claim for each in gone for claim in each.claims):
            self._cluster.forget(claim)
            del self._allocated[uid_of(claim)]
        self.placements = [each for each in self.placements if each.node != node]
        self.used &= ~self._cluster.state().numbers.bit(node)

    def undo(self) -> None:
        """Count no member as placed."""
        for claim in self._allocated.values():
            self._cluster.forget(claim)
        self._allocated.clear()
        self.placements = []
        self.used = 0

    def keep(self) -> tuple[Placement, ...]:
        """The placements, which count from now on by whoever takes them."""
        kept = tuple(self.placements)
        self._allocated = {}
        self.placements = []
        return kept
