"""The real allocator, fed with jobs of the trace."""

from __future__ import annotations

from collections.abc import Sequence

from bench import fleet
from bench.trace import Job
from controller.allocator.allocate import Allocation, allocate
from controller.allocator.allocated_devices import AllocatedDevices, DeviceAllocation
from controller.allocator.claim_request import parse_claim
from controller.allocator.inventory import Inventory
from controller.allocator.packing.policy import Policy
from controller.allocator.state import State
from dra_driver.selector.selector import Selectors


class Ours:
    """Nodes with so many cards each, as the agent publishes them."""

    def __init__(self, cards: Sequence[int], policy: Policy) -> None:
        self._policy = policy
        self._holdings = AllocatedDevices()
        inventory = Inventory.of(
            fleet.resource_slice(number, count) for number, count in enumerate(cards)
        )
        self._state = State(inventory, self._holdings, fleet.classes(), Selectors())
        self._nodes = self._state.numbers.set_of(
            [fleet.node_name(number) for number in range(len(cards))]
        )
        self._running: dict[int, DeviceAllocation] = {}

    def start(self, number: int, job: Job) -> bool:
        claim = fleet.claim([fleet.request(job.mode, job.slices)])
        wanted = parse_claim(claim, self._state.classes)
        outcome = allocate(self._state, [wanted], self._nodes, policy=self._policy)
        if not isinstance(outcome, Allocation):
            return False
        [[grant]] = outcome.assignments
        consumed = grant.consumed
        hold = DeviceAllocation(
            grant.device.id,
            None if consumed is None else {name: each.value for name, each in consumed.items()},
        )
        self._holdings.add(hold)
        self._running[number] = hold
        return True

    def stop(self, number: int) -> None:
        self._holdings.remove(self._running.pop(number))
