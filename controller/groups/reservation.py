"""Which nodes are reserved for the group that has waited longest."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from controller.allocator.allocated_devices import allocations_of
from controller.allocator.device import CardKey
from controller.allocator.nodes.node_set import NodeSet, numbers, set_of_numbers
from controller.allocator.packing.policy import Policy
from controller.allocator.state import State
from controller.filter.node_filter import NodeFilter
from controller.groups.request import GroupPlaced, GroupRequest
from controller.groups.search import MOST_MEMBERS, GroupSearch
from controller.placer.candidates import EVERY_NODE
from controller.placer.placer import Placer
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

_EMPTIEST_FIRST: Final = Policy(nodes=Packing.SPREAD).for_nodes
_NO_CARDS: Final[Mapping[CardKey, int]] = MappingProxyType({})


class _EmptyCluster:
    """The cluster as it would be if all pods had ended: a `GroupCluster` of its own."""

    def __init__(self, state: State) -> None:
        self._state = state.emptied()

    def state(self) -> State:
        return self._state

    def assume(self, claim: Object) -> None:
        for device in allocations_of(claim):
            self._state.allocated.add(device)

    def forget(self, claim: Object) -> None:
        for device in allocations_of(claim):
            self._state.allocated.remove(device)

    def allocated_share(self, nodes: NodeSet, more: Mapping[str, int]) -> int:
        del nodes, more
        return 0

    def cards_of_replicas(self, pod: Object) -> Mapping[CardKey, int]:
        del pod
        return _NO_CARDS


class GroupReserver:
    """Finds a small set of nodes that could serve a group if they were empty, and that have the
    least allocated. One instance, one thread; it is made before anything is published."""

    def __init__(self, state: State, nodes: NodeFilter, policy: Policy) -> None:
        self._present = state
        self._nodes = nodes
        self._cluster = _EmptyCluster(state)
        self._placer = Placer(self._cluster, nodes, policy)

    def nodes_for(self, request: GroupRequest) -> tuple[str, ...]:
        """Their names; none if the group is too large, if not even all nodes could serve it, or if
        that takes too long to find out."""
        if len(request.members) > MOST_MEMBERS:
            return ()
        try:
            return self._smallest(replace(request, excluded=0))
        except AllowanceSpent:
            logger.info("no nodes are reserved before the next check: the search takes too long")
            return ()

    def _smallest(self, request: GroupRequest) -> tuple[str, ...]:
        fleet = self._present.fleet
        fleet.refresh()
        levels = fleet.levels(_EMPTIEST_FIRST)
        order = [number for part in levels.walk(fleet.all_nodes) for number in numbers(part)]
        count = self._used(request, EVERY_NODE).bit_count()
        while count:
            among = set_of_numbers(islice(order, count)) | request.beside
            if used := self._used(request, among):
                return tuple(sorted(fleet.numbers.names(used)))
            count = 0 if count >= len(order) else 2 * count
        return ()

    def _used(self, request: GroupRequest, among: NodeSet) -> NodeSet:
        """The nodes that the group would use of these; none if they could not serve it."""
        limited = replace(request, excluded=~among)
        search = GroupSearch(limited, self._cluster, self._placer, self._nodes, ())
        try:
            while not search.advance():
                pass
            if not isinstance(search.outcome, GroupPlaced):
                return 0
            names = {each.node for each in search.outcome.placements}
            return self._present.numbers.set_of(names)
        finally:
            search.undo()
