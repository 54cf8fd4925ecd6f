"""The devices that kube-scheduler takes on a node: its own search (upstream: allocateOne and
allocateDevice of structured/internal/incubating, 1.37.2; of stable, 1.38.0-beta.0)."""

from __future__ import annotations

from collections.abc import Iterator

from controller.allocator.claim_request import MOST_RESULTS
from controller.allocator.device import Device
from controller.allocator.device_request import DeviceRequest
from controller.allocator.nodes.signature import Feasibility, Fill
from controller.allocator.order import Candidate, free_devices
from controller.allocator.search import ConstraintStates, NodeSearch, Task, clash, has_capacity


class _TooManyResults(Exception):
    """The claim would have more results than the API allows."""


class _Ended(Exception):
    """Upstream reports an error here, and tries nothing else."""


class FirstFit(NodeSearch):
    """Each request of each claim, in their order, takes the first of the node's devices that fit,
    as they stand in its slices; of `firstAvailable` the first alternative. If a later request gets
    nothing, the last choice is changed first.

    Each device consumes its card's counter, also for administrators (kubernetes#140729), except the
    one that is for administrators alone.
    """

    def run(self) -> bool:
        """As `NodeSearch.run`. Raises DevicesUnknown, too."""
        self._numbers: dict[Device, int] = {}
        self._options = {
            (claim, number): list(self._tasks_for(claim, number))
            for claim, wanted in enumerate(self._wanted)
            for number in range(len(wanted.requests))
        }
        if not all(any(map(_has_enough, tasks)) for tasks in self._options.values()):
            return False
        try:
            return self._place_claim(0, {})
        except (_TooManyResults, _Ended):
            return False

    def _place_claim(self, claim: int, states: ConstraintStates) -> bool:
        """The claim, and all after it."""
        if claim < len(self._wanted):
            return self._place_request(claim, 0, states)
        self._tasks = list(dict.fromkeys(task for task, _ in self._chosen))
        return True

    def _place_request(self, claim: int, number: int, states: ConstraintStates) -> bool:
        """The request of that number, and all after it."""
        before = len(self._chosen)
        if number == len(self._wanted[claim].requests):
            try:
                return self._place_claim(claim + 1, states)
            except _TooManyResults:
                del self._chosen[before:]
                return False
        tasks = self._options[claim, number]
        if len(tasks) == 1:
            return self._place_devices(tasks[0], 0, 0, states)
        exceeding = 0
        for task in tasks:
            try:
                if self._place_devices(task, 0, 0, states):
                    return True
            except _TooManyResults:
                del self._chosen[before:]
                exceeding += 1
        if exceeding == len(tasks):
            raise _TooManyResults
        return False

    def _place_devices(self, task: Task, nth: int, start: int, states: ConstraintStates) -> bool:
        """The devices of the task from the one at `nth` on, of its candidates from `start` on, and
        all requests after it."""
        left = task.count - nth
        if nth and not left:
            return self._place_request(task.claim, task.request + 1, states)
        given = sum(other.claim == task.claim for other, _ in self._chosen)
        if left > MOST_RESULTS - given:
            raise _TooManyResults
        if task.exact.device_request.count is None:
            return nth < len(task.candidates) and self._place_next_of_all(task, nth, states)
        return self._place_any(task, nth, range(start, len(task.candidates) - left + 1), states)

    def _place_any(self, task: Task, nth: int, places: range, states: ConstraintStates) -> bool:
        """The first of the candidates at these places with which the rest can be placed."""
        failed: set[object] = set()
        for index in places:
            candidate = task.candidates[index]
            if failed and self._equivalence(candidate) in failed:
                continue
            after = self._constrained(task, candidate, states)
            if after is not None and self._is_free(task, candidate):
                if self._choose(task, candidate, nth, index + 1, after):
                    return True
                if (alike := self._equivalence(candidate)) is not None:
                    failed.add(alike)
            self._budget.spend()
        return False

    def _place_next_of_all(self, task: Task, nth: int, states: ConstraintStates) -> bool:
        """There is no other choice for a request for all devices."""
        candidate = task.candidates[nth]
        if not self._has_counter(task, candidate):
            return False
        after = self._constrained(task, candidate, states)
        if after is None:
            raise _Ended
        return self._has_room(candidate) and self._choose(task, candidate, nth, 0, after)

    def _choose(
        self, task: Task, candidate: Candidate, nth: int, start: int, after: ConstraintStates
    ) -> bool:
        self._chosen.append((task, candidate))
        if self._place_devices(task, nth + 1, start, after):
            return True
        self._chosen.pop()
        return False

    def _is_free(self, task: Task, candidate: Candidate) -> bool:
        return self._has_counter(task, candidate) and self._has_room(candidate)

    def _has_counter(self, task: Task, candidate: Candidate) -> bool:
        device = candidate.device
        if device.kind.is_for_admins:
            return not any(
                other.device is device and clash(task, other_task)
                for other_task, other in self._chosen
            )
        return all(
            other.device is device and device.multiple
            for _, other in self._chosen
            if other.card == candidate.card and not other.device.kind.is_for_admins
        )

    def _has_room(self, candidate: Candidate) -> bool:
        before = [other for _, other in self._chosen if other.device is candidate.device]
        return not candidate.device.multiple or has_capacity(candidate, before)

    def _tasks_for(self, claim: int, number: int) -> Iterator[Task]:
        """All alternatives of the request."""
        for nth, exact in enumerate(self._wanted[claim].requests[number].alternatives):
            listed = self._of_others if exact.of_others else self._as_published
            candidates, count = listed(exact.device_request)
            yield Task(claim, number, nth, exact, self._applying(claim, exact), candidates, count)

    def _as_published(self, device_request: DeviceRequest) -> tuple[list[Candidate], int]:
        """The devices that are free for the request, and how many it takes. Of all devices only
        those before the first that is not free, and that one if it has too little left to share:
        upstream looks at constraints first."""
        self._budget.allowance.check()
        node, selectors = self._node, self._state.selectors
        places = {device.id: place for place, device in enumerate(node.devices)}
        free = free_devices(node, device_request, selectors)
        free.sort(key=lambda candidate: places[candidate.device.id])
        self._candidates[device_request, ()] = free
        if device_request.count is not None:
            return free, device_request.count
        asked = sorted(
            (places[card.devices[index].id], number, index)
            for number, card in enumerate(node.cards)
            for index in card.signature.fit_of(device_request, card.devices, selectors).selected
            if card.signature.feasibility(device_request, index) is not Feasibility.TOO_SMALL
        )
        until = zip(free, asked, strict=False)
        before = [each for each, (place, *_) in until if places[each.device.id] == place]
        if len(before) < len(asked):
            _, number, index = asked[len(before)]
            before += filter(None, [self._full(device_request, number, index)])
        return before, len(asked)

    def _of_others(self, device_request: DeviceRequest) -> tuple[list[Candidate], int]:
        """The same of other drivers' devices. Raises DevicesUnknown."""
        self._budget.allowance.check()
        others = self._state.others
        fits = list(others.fits(self._node.name, device_request, self._state.selectors))
        listed = [
            Candidate(fit.device, fit.capacity_fit, fit.use, Fill(), self._number(fit.device))
            for fit in fits
        ]
        free = [each for each, fit in zip(listed, fits, strict=True) if fit.is_free]
        self._candidates[device_request, ()] = free
        if device_request.count is not None:
            return free, device_request.count
        held = next((at for at, fit in enumerate(fits) if not fit.is_free), len(fits))
        return listed[:held], len(fits)

    def _number(self, device: Device) -> int:
        """In place of a card's."""
        return self._numbers.setdefault(device, len(self._node.cards) + len(self._numbers))

    def _full(self, device_request: DeviceRequest, number: int, index: int) -> Candidate | None:
        """The device at `index` of that card, if only its room is lacking."""
        card = self._node.cards[number]
        kind, use = card.signature.kinds[index], card.signature.uses[index]
        fit = device_request.capacity_fit(kind)
        is_full = card.signature.feasibility(device_request, index) is Feasibility.FULL
        if not is_full or fit is None or fit.taints or card.signature.holder(index):
            return None
        return Candidate(card.devices[index], fit, use, Fill(), number)


def _has_enough(task: Task) -> bool:
    return len(task.candidates) >= task.count > 0
