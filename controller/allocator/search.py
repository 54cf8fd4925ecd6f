"""The search on one node: complete, with a bound on its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from controller.allocator.claim_request import MOST_RESULTS, ClaimRequest, Request
from controller.allocator.constraints import Attribute, ConstraintState, MatchAttribute
from controller.allocator.device import Device
from controller.allocator.device_request import DeviceRequest
from controller.allocator.order import Candidate, Order
from controller.allocator.search_state import Asker, Budget, Found, SearchState, Task
from controller.allocator.signature import Verdict
from controller.allocator.state import State


class NodeSearch:
    """Tries every choice of alternatives and devices for all requests of all claims: the first
    alternatives first, and of the devices those that `order` prefers.

    Within a request only ascending choices are tried, as the order of its devices means nothing,
    and of devices that are equivalent only the first.
    """

    def __init__(
        self, state: State, wanted: Sequence[ClaimRequest], order: Order, budget: Budget
    ) -> None:
        self._state = state
        self._wanted = wanted
        self._node = order.node
        self._order = order
        self._budget = budget
        self._search_state = SearchState()
        self._candidates: dict[DeviceRequest, Sequence[Candidate] | None] = {}
        self._constraints: dict[tuple[int, int], ConstraintState] = {}
        self._chosen: list[tuple[Task, Candidate]] = []
        self._equivalent: dict[int, object] = {}
        self._compared = sorted({c.attribute for each in wanted for c in each.constraints})

    def run(self) -> Found | None:
        """None where the node cannot serve the claims. Raises SearchLimitReached."""
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
                alternatives = sum(task.alternative for task in combination)
                return Found(tuple(self._chosen), alternatives)
        return None

    def constraints_on(self, task: Task) -> list[int]:
        """Numbers of the claim's constraints that apply to the task's request."""
        constraints = self._wanted[task.claim].constraints
        return [n for n, each in enumerate(constraints) if each.applies(task.request.name)]

    def _tasks(self, claim: int, number: int, request: Request) -> list[Task]:
        tasks = []
        for nth, exact in enumerate(request.alternatives):
            candidates = self._candidates_for(exact.demand)
            if candidates is None:
                continue
            count = exact.demand.count
            if count is None:
                count = len(candidates)
            task = Task(claim, number, exact, nth, candidates, count)
            if count > 1:
                task = replace(task, candidates=self._matching(task))
            if len(task.candidates) >= count:
                tasks.append(task)
        return tasks

    def _matching(self, task: Task) -> Sequence[Candidate]:
        """The candidates without those whose value too few have, where the values of all the
        request's devices must match."""
        candidates = task.candidates
        for name in self._alike(task.request.demand, task.request.name):
            values = [each.device.attribute(name) for each in candidates]
            if any(each is not None and len(each.values) > 1 for each in values):
                continue  # of lists, different ones may match
            counted: Counter[Attribute | None] = Counter(values)
            candidates = [
                each
                for each, value in zip(candidates, values, strict=True)
                if value is not None and counted[value] >= task.count
            ]
        return candidates

    def _candidates_for(self, demand: DeviceRequest) -> Sequence[Candidate] | None:
        """None where all devices are asked, and not all can be had."""
        if demand not in self._candidates:
            self._budget.check()
            if demand.count is None:
                self._candidates[demand] = self._all_devices(demand)
            else:
                free = list(self._free_devices(demand))
                self._candidates[demand] = self._order.devices(
                    demand, free, self._whole_cards(), self._alike(demand)
                )
        return self._candidates[demand]

    def _free_devices(self, demand: DeviceRequest) -> Sequence[Candidate]:
        selectors, found = self._state.selectors, []
        for number, card in enumerate(self._node.cards):
            for index, offer, use, fill in card.signature.fit_of(
                demand, card.devices, selectors
            ).free:
                found.append(Candidate(card.devices[index], offer, use, fill, number))
        return found

    def _all_devices(self, demand: DeviceRequest) -> Sequence[Candidate] | None:
        """All that are asked with allocationMode All, at least one; None where not all of them can
        be had. Devices that are too small, or that have too little left to share, do not count."""
        if self._state.inventory.problem_on(self._node.name):
            return None
        for card in self._node.cards:
            fit = card.signature.fit_of(demand, card.devices, self._state.selectors)
            free = {each.at for each in fit.free}
            for index in fit.selected:
                verdict = card.signature.verdict(demand, index)
                if index not in free and verdict not in {Verdict.TOO_SMALL, Verdict.FULL}:
                    return None
        found = self._free_devices(demand)
        return found if 0 < len(found) <= MOST_RESULTS else None

    def _alike(self, demand: DeviceRequest, request: str = "") -> list[str]:
        """The attributes of which all devices of the demand's requests, or of the one of that
        name, must have the same value."""
        names = {
            constraint.attribute
            for wanted in self._wanted
            for constraint in wanted.constraints
            for each in wanted.requests
            for exact in each.alternatives
            if isinstance(constraint, MatchAttribute)
            and exact.demand is demand
            and constraint.applies(exact.name)
            and request in {"", exact.name}
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
            alike = self._equivalence(candidate) if failed else None
            if alike is not None and alike in failed:
                continue
            undo = self._take(task, candidate)
            if undo is None:
                self._budget.spend()
                continue
            if self._place(tasks, *_next(tasks, position, nth, index)):
                return True
            self._take_back(undo)
            self._budget.spend()
            failed.add(self._equivalence(candidate))
        return False

    def _take(
        self, task: Task, candidate: Candidate
    ) -> list[tuple[tuple[int, int], ConstraintState]] | None:
        """What the constraints were before, or None where the candidate does not fit."""
        constraints = self._wanted[task.claim].constraints
        after: list[tuple[tuple[int, int], ConstraintState]] = []
        for number in self.constraints_on(task) if constraints else ():
            key = task.claim, number
            state = constraints[number].add(self._constraints.get(key, ()), candidate.device)
            if state is None:
                return None
            after.append((key, state))
        asker = Asker(task.claim, task.number, task.request.demand.admin_access)
        if not self._search_state.take(asker, candidate):
            return None
        before = [(key, self._constraints.get(key, ())) for key, _ in after]
        self._constraints.update(after)
        self._chosen.append((task, candidate))
        return before

    def _take_back(self, before: list[tuple[tuple[int, int], ConstraintState]]) -> None:
        self._chosen.pop()
        self._search_state.take_back()
        self._constraints.update(before)

    def _equivalence(self, candidate: Candidate) -> object:
        """Equal for candidates of which one is as good as the other, as all that the search reads
        of their cards is the same: where one leads nowhere, so does the other. None where that is
        not known, as something of the card is chosen already."""
        if self._search_state.touches(candidate.device):
            return None
        card = self._equivalent.get(candidate.card)
        if card is None:
            found = self._node.cards[candidate.card]
            card = self._equivalent[candidate.card] = (
                found.signature,
                found.devices[0].card is None,
                tuple(self._serves(device) for device in found.devices),
                tuple(device.attribute(n) for device in found.devices for n in self._compared),
            )
        return card, candidate.device.kind

    def _serves(self, device: Device) -> tuple[int, ...]:
        """The numbers of the demands that the device can serve."""
        return tuple(
            number
            for number, found in enumerate(self._candidates.values())
            if any(each.device is device for each in found or ())
        )


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
