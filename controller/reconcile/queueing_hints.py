"""Whether an event can help the waiting pods of a class (kube-scheduler: queueing hints)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from controller.allocator.allocate import can_serve
from controller.allocator.node_set import NodeSet
from controller.allocator.order import Policy
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key
from controller.filter.feasible_nodes import NodeFilter
from controller.queue.pod_class import PodClass
from controller.reconcile.steps import Steps
from dra_driver.selector.allowance import AllowanceSpent

_SLICE: Final = 0.1  # seconds, after which the thread looks at its events


class ClassHints:
    """`controller.queue.pod_class.QueueingHints`, by the filter and the allocator."""

    def __init__(self, cache: ClusterCache, fits: NodeFilter, policy: Policy, steps: Steps) -> None:
        self._cache = cache
        self._fits = fits
        self._policy = policy
        self._steps = steps

    def nodes_of(self, pools: AbstractSet[str]) -> NodeSet:
        """A pool that is not complete is on no node: its other slices are an event of their own."""
        state = self._cache.state()
        names = map(state.inventory.node_of, pools)
        return state.numbers.set_of([name for name in names if name is not None])

    def helps(self, pod_class: PodClass, key: Key, nodes: NodeSet) -> bool:
        """Also where it takes too long to find out here."""
        with self._steps.step("hint", key.namespace, _SLICE):
            try:
                feasible = self._feasible(pod_class, nodes)
                if not feasible:
                    return False
                state = self._cache.state()
                return can_serve(state, pod_class.wanted, feasible, policy=self._policy)
            except AllowanceSpent:
                return True

    def _feasible(self, pod_class: PodClass, nodes: NodeSet) -> NodeSet:
        bound = pods.node_name(pod_class.pod)
        if bound:
            return nodes & self._fits.numbers.bit(bound)
        feasible = self._fits.among(pod_class.pod, nodes)
        for selector in pod_class.selectors:
            if feasible:
                feasible &= self._fits.matching(selector)
        return feasible
