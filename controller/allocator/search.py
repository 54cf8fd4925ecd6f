"""The search for devices of one node: complete, with a bound on its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from controller.allocator.claim_request import MOST_RESULTS, ClaimRequest, ExactRequest
from controller.allocator.device import Attribute, Device
from controller.allocator.device_request import DeviceRequest
from controller.allocator.order import Candidate, Order, Score, all_devices, free_devices
from controller.allocator.results import DeviceAssignment, DeviceAssignments
from controller.allocator.state import Budget, State


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """`count` devices to find for a request of a claim. `alternative` is the index of `exact`,
    `constraints` those of the claim's constraints that apply."""

    claim: int
    request: int
    alternative: int
    exact: ExactRequest
    constraints: tuple[int, ...]
    candidates: Sequence[Candidate]
    count: int


class Slot(NamedTuple):
    """One device of a task; `left` more follow. If the slot before asks the same, this
    one `repeats` it: the two are not tried in both orders."""

    task: Task
    left: int
    repeats: bool


ConstraintStates = Mapping[tuple[int, int], tuple[Attribute, ...]]
"""By claim and constraint, what the devices chosen so far leave of it."""


class NodeSearch:
    """Tries every choice of alternatives and devices for all requests of all claims: the first
    alternatives first, and of the devices those that `order` prefers.

    Within a request only ascending choices are tried, as the order of its devices means nothing,
    and of equivalent devices only the first.
    """

    def __init__(
        self, state: State, wanted: Sequence[ClaimRequest], order: Order, budget: Budget
    ) -> None:
        self._state = state
        self._wanted = wanted
        self._node = order.node
        self._order = order
        self._budget = budget
        # Whole cards of all claims are to be near each other.
        self._cards = sum(
            request.alternatives[0].device_request.count or 1
            for each in wanted
            for request in each.requests
        )
        self._tasks: Sequence[Task] = ()
        self._candidates: dict[tuple[DeviceRequest, tuple[str, ...]], list[Candidate] | None] = {}
        self._chosen: list[tuple[Task, Candidate]] = []
        self._equivalent: dict[int, object] = {}

    def run(self) -> bool:
        """Whether the node can serve the claims. Raises SearchLimitReached, AllowanceSpent."""
        options: list[list[Task]] = []
        for claim, wanted in enumerate(self._wanted):
            for number in range(len(wanted.requests)):
                options.append(list(self._tasks_for(claim, number)))
                if not options[-1]:
                    return False
        for nth, tasks in enumerate(product(*options)):
            if nth:
                self._budget.spend()
            self._tasks = tasks
            if _is_within_limit(tasks) and self._place(_slots(tasks), 0, 0, {}):
                return True
        return False

    def score(self) -> Score:
        """Of what was found of ours. Administrative access does not count."""
        given = [
            (task.exact.device_request, candidate)
            for task, candidate in self._chosen
            if not (task.exact.device_request.admin_access or task.exact.of_others)
        ]
        return self._order.score(given, sum(task.alternative for task in self._tasks))

    def assignments(self) -> DeviceAssignments:
        """What was found."""
        by_claim: list[list[DeviceAssignment]] = [[] for _ in self._wanted]
        for task, candidate in sorted(self._chosen, key=lambda chosen: chosen[0].request):
            shared = candidate.capacity_fit.consumed if candidate.device.multiple else None
            by_claim[task.claim].append(DeviceAssignment(task.exact, candidate.device, shared))
        return tuple(map(tuple, by_claim))

    def _tasks_for(self, claim: int, number: int) -> Iterator[Task]:
        """The alternatives of the request for which the node has enough candidates."""
        constraints = self._wanted[claim].constraints
        for nth, exact in enumerate(self._wanted[claim].requests[number].alternatives):
            applying = self._applying(claim, exact)
            alike = {constraints[n].attribute for n in applying if not constraints[n].distinct}
            candidates = self._candidates_for(exact.device_request, tuple(sorted(alike)))
            if candidates is not None:
                count = exact.device_request.count or len(candidates)
                if len(candidates) >= count:
                    yield Task(claim, number, nth, exact, applying, candidates, count)

    def _applying(self, claim: int, exact: ExactRequest) -> tuple[int, ...]:
        """The numbers of the claim's constraints that hold for the request."""
        constraints = self._wanted[claim].constraints
        return tuple(n for n, each in enumerate(constraints) if each.applies(exact.name))

    def _candidates_for(
        self, device_request: DeviceRequest, alike: tuple[str, ...]
    ) -> list[Candidate] | None:
        """In order. None if all devices are requested, and not all are available."""
        key = device_request, alike
        if key not in self._candidates:
            self._budget.allowance.check()
            node, selectors = self._node, self._state.selectors
            candidates: list[Candidate] | None = None
            if device_request.count is not None:
                free = free_devices(node, device_request, selectors)
                candidates = self._order.devices(device_request, free, self._cards, alike)
            elif node.name not in self._state.inventory.problems:
                candidates = all_devices(node, device_request, selectors)
            self._candidates[key] = candidates
        return self._candidates[key]

    def _place(self, slots: Sequence[Slot], nth: int, start: int, states: ConstraintStates) -> bool:
        """Fill the slots from the one at `nth`, with its task's candidates from `start` on."""
        if nth == len(slots):
            return True
        task, left, _ = slots[nth]
        failed: set[object] = set()
        for index in range(start, len(task.candidates) - left):
            candidate = task.candidates[index]
            if failed and self._equivalence(candidate) in failed:
                continue
            after = self._constrained(task, candidate, states)
            if after is None or not self._is_free(task, candidate):
                self._budget.spend()
                continue
            self._chosen.append((task, candidate))
            if self._place(slots, nth + 1, _start(slots, nth, index), after):
                return True
            self._chosen.pop()
            self._budget.spend()
            if (alike := self._equivalence(candidate)) is not None:
                failed.add(alike)
        return False

    def _constrained(
        self, task: Task, candidate: Candidate, states: ConstraintStates
    ) -> ConstraintStates | None:
        """The states with the candidate's device, too; None if it breaks a constraint."""
        if not task.constraints:
            return states
        after = dict(states)
        for number in task.constraints:
            key = task.claim, number
            constraint = self._wanted[task.claim].constraints[number]
            state = constraint.add(states.get(key, ()), candidate.device)
            if state is None:
                return None
            after[key] = state
        return after

    def _is_free(self, task: Task, candidate: Candidate) -> bool:
        """Whether what was chosen before leaves the device to the task.

        As in upstream, administrative access ignores what is allocated, and what earlier claims
        choose, but not what its own claim chooses; later requests count it like any other.
        """
        device, admin_access = candidate.device, task.exact.device_request.admin_access
        before: list[Candidate] = []
        for other_task, other in self._chosen:
            if other.card != candidate.card:
                continue
            if other.device is not device:
                if not admin_access and not other_task.exact.device_request.admin_access:
                    return False
            elif device.multiple:
                before.append(other)
            elif clash(task, other_task):
                return False
        return not before or has_capacity(candidate, before)

    def _equivalence(self, candidate: Candidate) -> object:
        """Equal for candidates that are equally good, as all that the search reads of their cards
        is equal: if one fails, so does the other. None if that is unknown, as something of the card
        is chosen already."""
        if any(other.card == candidate.card for _, other in self._chosen):
            return None
        card = self._equivalent.get(candidate.card)
        if card is None:
            card = self._equivalent[candidate.card] = self._read_by_search(candidate)
        return card, candidate.device.kind

    def _read_by_search(self, candidate: Candidate) -> object:
        """All that the search reads of the candidate's card."""
        signature: object
        if candidate.card < len(self._node.cards):
            card = self._node.cards[candidate.card]
            signature, devices = card.signature, card.devices
        else:  # another driver's device, of which only its use counts beside what follows
            signature, devices = candidate.use, (candidate.device,)
        compared = sorted({c.attribute for each in self._wanted for c in each.constraints})
        return (
            signature,
            devices[0].card is None,
            tuple(self._serves(device) for device in devices),
            tuple(device.attribute(name) for device in devices for name in compared),
        )

    def _serves(self, device: Device) -> tuple[bool, ...]:
        """For each list of candidates, whether the device is in it."""
        return tuple(
            any(each.device is device for each in found or ())
            for found in self._candidates.values()
        )


def _is_within_limit(tasks: Sequence[Task]) -> bool:
    results = Counter[int]()
    for task in tasks:
        results[task.claim] += task.count
    return max(results.values(), default=0) <= MOST_RESULTS


def _slots(tasks: Sequence[Task]) -> list[Slot]:
    """Requests for all devices first, then those with the least choice; equal ones together."""
    first = {task.exact.device_request: nth for nth, task in reversed(list(enumerate(tasks)))}

    def key(task: Task) -> tuple[bool, int, int]:
        device_request = task.exact.device_request
        return (
            device_request.count is not None,
            len(task.candidates) - task.count,
            first[device_request],
        )

    slots: list[Slot] = []
    for task in sorted(tasks, key=key):
        repeats = bool(slots) and _repeats(slots[-1].task, task)
        slots += [
            Slot(task, left, repeats or left < task.count - 1)
            for left in reversed(range(task.count))
        ]
    return slots


def _repeats(before: Task, task: Task) -> bool:
    device_request = task.exact.device_request
    if (
        device_request is not before.exact.device_request
        or device_request.count != 1
        or device_request.admin_access
    ):
        return False
    if before.claim == task.claim:
        return before.constraints == task.constraints
    return not before.constraints and not task.constraints


def _start(slots: Sequence[Slot], nth: int, index: int) -> int:
    """The first candidate for the slot after that at `nth`, which has the candidate at `index`."""
    if nth + 1 == len(slots) or not slots[nth + 1].repeats:
        return 0
    task = slots[nth].task
    if slots[nth + 1].task is not task and task.candidates[index].device.multiple:
        return index
    return index + 1


def clash(one: Task, other: Task) -> bool:
    """Whether the two cannot both have one device that is not shared."""
    later = max(one, other, key=lambda each: (each.claim, each.request))
    return not later.exact.device_request.admin_access or one.claim == other.claim


def has_capacity(candidate: Candidate, before: Sequence[Candidate]) -> bool:
    """Whether the device has room for the candidate beside what is allocated and what was chosen
    before."""
    consumed = Counter(candidate.use.consumed if candidate.use is not None else {})
    for each in before:
        consumed.update({name: amount for name, amount, _ in each.capacity_fit.amounts})
    return all(
        consumed[name] + amount <= total for name, amount, total in candidate.capacity_fit.amounts
    )
