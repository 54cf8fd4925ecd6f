"""What the parts of the deciding thread share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.cache.cache import ClusterCache
from controller.queue.scheduling_queue import SchedulingQueue
from controller.reconcile.reporter import Reporter
from controller.settings import ControllerSettings
from controller.write.dispatcher import WriteDispatcher


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
