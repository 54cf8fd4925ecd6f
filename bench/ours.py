"""The real allocator, fed with jobs of the trace."""

from __future__ import annotations

from collections.abc import Sequence

from bench import fleet
from bench.trace import Job
from controller.allocator.allocate import Allocation, allocate, feasible
from controller.allocator.allocated_devices import AllocatedDevices, DeviceAllocation
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.inventory import Inventory
from controller.allocator.packing.policy import Policy
from controller.allocator.results import DeviceAssignment
from controller.allocator.state import State
from dra_driver.model.devices.topology import bits
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors


class Ours:
    """Nodes with so many cards each, as their agents publish them for whoever allocates."""

    def __init__(self, cards: Sequence[int], policy: Policy) -> None:
        self._policy = policy
        self._holdings = AllocatedDevices()
        slices = [fleet.resource_slice(number, count) for number, count in enumerate(cards)]
        if policy.by_scheduler:
            slices = [part for each in slices for part in fleet.for_scheduler(each)]
        inventory = Inventory.of(slices, for_scheduler=policy.by_scheduler)
        self._state = State(inventory, self._holdings, fleet.classes(), Selectors())
        self._nodes = self._state.numbers.set_of(
            [fleet.node_name(number) for number in range(len(cards))]
        )
        self._running: dict[int, Sequence[DeviceAllocation]] = {}

    def start(self, number: int, job: Job, *, on: str = "") -> bool:
        """Whether the job got its devices, on that node if one is given."""
        nodes = self._state.numbers.set_of([on]) if on else self._nodes
        outcome = allocate(self._state, [self._wanted(job)], nodes, policy=self._policy)
        if not isinstance(outcome, Allocation):
            return False
        [devices] = outcome.assignments
        self._running[number] = [_held(device) for device in devices]
        for held in self._running[number]:
            self._holdings.add(held)
        return True

    def serving(self, job: Job) -> list[str]:
        """The nodes that each have devices for the job."""
        found = feasible(self._state, [self._wanted(job)], self._nodes, policy=self._policy)
        return list(self._state.numbers.names(found))

    def stop(self, number: int) -> None:
        for held in self._running.pop(number):
            self._holdings.remove(held)

    def devices_of(self, number: int) -> Sequence[DeviceAllocation]:
        """What the running job holds."""
        return self._running[number]

    def is_apart(self, number: int) -> bool:
        """Whether an empty node has as many cards nearer to each other than the job's."""
        devices = [held.device for held in self._running[number]]
        node = self._state.fleet.node(devices[0].pool.removeprefix(f"{DRIVER}/"))
        assert node is not None
        cards = [card for device in devices if (card := node.card_of(device)) is not None]
        nearest = node.topology.nearest(len(cards), bits(range(len(node.cards)))) or ()
        farthest, _ = node.topology.spread(bits(cards))
        return farthest > node.topology.spread(bits(nearest))[0]

    def _wanted(self, job: Job) -> ClaimRequest:
        claim = fleet.claim([fleet.request(job.mode, job.slices, cards=job.cards)])
        return parse_claim(claim, self._state.classes)


def _held(device: DeviceAssignment) -> DeviceAllocation:
    if device.consumed is None:
        return DeviceAllocation(device.device.id, None)
    consumed = {name: amount.value for name, amount in device.consumed.items()}
    return DeviceAllocation(device.device.id, consumed)
