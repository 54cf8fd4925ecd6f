"""What the parts of the deciding thread share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.cache.cache import ClusterCache
from controller.queue.scheduling_queue import SchedulingQueue
from controller.reconcile.reporter import Reporter
from controller.settings import ControllerSettings
from controller.write.dispatcher import WriteDispatcher
from dra_driver.model.claims.claim import Object, all_results, results


@dataclass(frozen=True, slots=True)
class Context:
    """`clock` returns seconds."""

    settings: ControllerSettings
    cache: ClusterCache
    dispatcher: WriteDispatcher
    queue: SchedulingQueue
    reporter: Reporter
    clock: Callable[[], float]

    def nodes_of(self, pools: Iterable[str]) -> set[str]:
        """The nodes of these pools. A pool that is incomplete has none yet: another slice event
        completes it."""
        inventory = self.cache.state().inventory
        return {node for pool in pools if (node := inventory.node_of(pool)) is not None}

    def nodes_of_devices(self, claim: Object) -> set[str]:
        """The nodes of the devices that the claim has; of other drivers', those that are known."""
        others = self.cache.state().others.inventory
        nodes = self.nodes_of(each.pool for each in results(claim))
        for each in all_results(claim):
            nodes.update(others.nodes_of((each.driver, each.pool)))
        return nodes
