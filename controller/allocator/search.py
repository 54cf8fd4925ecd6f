"""The search on one node: complete, with a bound on its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from controller.allocator.amount import Amount
from controller.allocator.attempt import Asker, Attempt
from controller.allocator.budget import Budget
from controller.allocator.candidates import Candidate, all_devices, free_devices
from controller.allocator.constraint import MatchAttribute, Standing
from controller.allocator.demand import Demand
from controller.allocator.device import Device
from controller.allocator.order import Order
from controller.allocator.request import MOST_RESULTS, ExactRequest, Request, Wanted
from controller.allocator.state import State
from controller.allocator.twins import Twins


@dataclass(frozen=True, slots=True)
class Grant:
    """One device for one request; `consumed` is None unless the device is shared."""

    request: ExactRequest
    device: Device
    consumed: Mapping[str, Amount] | None


Grants = tuple[tuple[Grant, ...], ...]  # of each claim, in the order of its requests


@dataclass(frozen=True, slots=True)
class Task:
    """`count` devices to find for a request. `repeats` says that the task before asks the same,
    so that the two are not tried in both orders."""

    claim: int
    number: int
    request: ExactRequest
    candidates: Sequence[Candidate]
    count: int
    repeats: bool = False


class NodeSearch:
    """Tries every choice of alternatives and devices for all requests of all claims: the first
    alternatives first, and of the devices those that `order` prefers.

    Within a request only ascending choices are tried, as the order of its devices means nothing,
    and of devices that are twins only the first.
    """

    def __init__(
        self, state: State, wanted: Sequence[Wanted], node: str, order: Order, budget: Budget
    ) -> None:
        self._state = state
        self._wanted = wanted
        self._node = node
        self._order = order
        self._budget = budget
        self._attempt = Attempt(state)
        self._candidates: dict[Demand, Sequence[Candidate] | None] = {}
        self._standings: dict[tuple[int, int], Standing] = {}
        self._chosen: list[tuple[Task, Candidate]] = []
        self._twins: Twins | None = None

    def run(self) -> Grants | None:
        """The grants of each claim, or None where there is no way. Raises SearchLimitReached."""
        options: list[list[Task]] = []
        for claim, wanted in enumerate(self._wanted):
            for number, request in enumerate(wanted.requests):
                tasks = self._tasks(claim, number, request)
                if not tasks:
                    return None
                options.append(tasks)
        for nth, combination in enumerate(product(*options)):
            self._budget.check()
            if nth:
                self._budget.spend()
            if self._is_within_limit(combination) and self._place(
                _sorted(self, combination), 0, 0, 0
            ):
                return self._grants()
        return None

    def constraints_on(self, task: Task) -> list[int]:
        """Numbers of the claim's constraints that apply to the task's request."""
        constraints = self._wanted[task.claim].constraints
        return [n for n, each in enumerate(constraints) if each.applies(task.request.name)]

    def _tasks(self, claim: int, number: int, request: Request) -> list[Task]:
        tasks = []
        for exact in request.alternatives:
            candidates = self._candidates_for(exact.demand)
            if candidates is None:
                continue
            count = exact.demand.count
            if count is None:
                count = len(candidates)
            if len(candidates) >= count:
                tasks.append(Task(claim, number, exact, candidates, count))
        return tasks

    def _candidates_for(self, demand: Demand) -> Sequence[Candidate] | None:
        """None where all devices are asked, and not all can be had."""
        if demand not in self._candidates:
            self._budget.check()
            if demand.count is None:
                self._candidates[demand] = all_devices(self._state, demand, self._node)
            else:
                free = free_devices(self._state, demand, self._node)
                free = [each for each in free if self._attempt.allows(each.device)]
                self._candidates[demand] = self._order.devices(
                    demand, free, self._whole_cards(), self._alike(demand)
                )
        return self._candidates[demand]

    def _alike(self, demand: Demand) -> list[str]:
        """The attributes of which all devices of the demand's requests must have the same value."""
        names = {
            constraint.attribute
            for wanted in self._wanted
            for constraint in wanted.constraints
            for request in wanted.requests
            for exact in request.alternatives
            if isinstance(constraint, MatchAttribute)
            and exact.demand is demand
            and constraint.applies(exact.name)
        }
        return sorted(names)

    def _whole_cards(self) -> int:
        """How many cards all claims together take, which are to be near each other."""
        return sum(
            each.alternatives[0].demand.count or 1
            for wanted in self._wanted
            for each in wanted.requests
        )

    def _is_within_limit(self, tasks: Sequence[Task]) -> bool:
        results = [0] * len(self._wanted)
        for task in tasks:
            results[task.claim] += task.count
        return max(results, default=0) <= MOST_RESULTS

    def _place(self, tasks: Sequence[Task], position: int, nth: int, start: int) -> bool:
        if position == len(tasks):
            return True
        task = tasks[position]
        failed: set[object] = set()
        for index in range(start, len(task.candidates) - task.count + nth + 1):
            candidate = task.candidates[index]
            twin = self._twin(candidate) if failed else None
            if twin is not None and twin in failed:
                continue
            undo = self._take(task, candidate)
            if undo is None:
                self._budget.spend()
                continue
            if self._place(tasks, *_next(tasks, position, nth, index)):
                return True
            self._take_back(undo)
            self._budget.spend()
            failed.add(self._twin(candidate))
        return False

    def _take(
        self, task: Task, candidate: Candidate
    ) -> list[tuple[tuple[int, int], Standing]] | None:
        """What the constraints were before, or None where the candidate does not fit."""
        constraints = self._wanted[task.claim].constraints
        after: list[tuple[tuple[int, int], Standing]] = []
        for number in self.constraints_on(task) if constraints else ():
            key = task.claim, number
            standing = constraints[number].add(self._standings.get(key, ()), candidate.device)
            if standing is None:
                return None
            after.append((key, standing))
        asker = Asker(task.claim, task.number, task.request.demand.admin_access)
        if not self._attempt.take(asker, candidate):
            return None
        before = [(key, self._standings.get(key, ())) for key, _ in after]
        self._standings.update(after)
        self._chosen.append((task, candidate))
        return before

    def _take_back(self, before: list[tuple[tuple[int, int], Standing]]) -> None:
        self._chosen.pop()
        self._attempt.take_back()
        self._standings.update(before)

    def _twin(self, candidate: Candidate) -> object:
        """Equal for candidates of which one is as good as the other; None where that is not
        known, as something of the card is chosen already."""
        if self._attempt.touches(candidate.device):
            return None
        if self._twins is None:
            self._twins = Twins(self._state, self._wanted, self._candidates, self._node)
        return self._twins.of(candidate.device)

    def _grants(self) -> Grants:
        grants: list[list[Grant]] = [[] for _ in self._wanted]
        for task, candidate in sorted(self._chosen, key=lambda each: each[0].number):
            shared = candidate.offer.consumed if candidate.device.multiple else None
            grants[task.claim].append(Grant(task.request, candidate.device, shared))
        return tuple(tuple(each) for each in grants)


def _sorted(search: NodeSearch, tasks: Sequence[Task]) -> list[Task]:
    """Requests for all devices first, then those with the least choice; equal ones together."""
    if len(tasks) == 1:
        return list(tasks)
    first = {task.request.demand: nth for nth, task in reversed(list(enumerate(tasks)))}

    def key(task: Task) -> tuple[bool, int, int]:
        demand = task.request.demand
        return demand.count is not None, len(task.candidates) - task.count, first[demand]

    found: list[Task] = []
    for task in sorted(tasks, key=key):
        if found and _repeats(search, found[-1], task):
            found.append(replace(task, repeats=True))
        else:
            found.append(task)
    return found


def _repeats(search: NodeSearch, before: Task, task: Task) -> bool:
    if task.request.demand is not before.request.demand or task.count != 1:
        return False
    if task.request.demand.count is None or task.request.demand.admin_access:
        return False
    applying = search.constraints_on(before), search.constraints_on(task)
    return applying == ([], []) or (before.claim == task.claim and applying[0] == applying[1])


def _next(tasks: Sequence[Task], position: int, nth: int, index: int) -> tuple[int, int, int]:
    """Position, number within the task and first candidate of what is to be found next."""
    task = tasks[position]
    if nth + 1 < task.count:
        return position, nth + 1, index + 1
    following = position + 1
    if following < len(tasks) and tasks[following].repeats:
        multiple = task.candidates[index].device.multiple
        return following, 0, index if multiple else index + 1
    return following, 0, 0
