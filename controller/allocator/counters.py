"""Counter sets: what devices of one pool take from one another (upstream: checkAvailableCounters,
1.36.3)."""

from __future__ import annotations

from collections.abc import Iterable

from controller.allocator.device import CounterUse, Device
from controller.allocator.holdings import Holdings
from controller.allocator.pool import Pool

Counter = tuple[str, str]


class CounterLedger:
    """The counters of one pool that nothing holds, and what a search takes of them.

    A device that several claims share consumes its counters once. Where counters are consumed
    beyond what there is (a set was made smaller under held devices), no device of the pool that
    consumes any is given out.
    """

    def __init__(self, pool: Pool, holdings: Holdings) -> None:
        self._left = dict(pool.counters or {})
        for device in pool.devices:
            if device.counters and holdings.holds(device.id):
                self.take(device.counters)
        self._exceeded = any(left < 0 for left in self._left.values())

    def allows(self, device: Device) -> bool:
        return not self._exceeded and all(
            use.amount <= self._left[use.counter] for use in device.counters
        )

    def take(self, uses: Iterable[CounterUse]) -> None:
        for use in uses:
            self._left[use.counter] -= use.amount

    def give_back(self, uses: Iterable[CounterUse]) -> None:
        for use in uses:
            self._left[use.counter] += use.amount
