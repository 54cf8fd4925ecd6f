"""The search on one node: complete, with a bound on its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from controller.allocator.capacity import Amount
from controller.allocator.device import Attribute, Device
from controller.allocator.holdings import Hold, Holdings
from controller.allocator.order import ordered_devices
from controller.allocator.request import Request, Wanted
from controller.allocator.state import Standing, State, consumption, has_room

Candidate = tuple[Device, Mapping[str, Amount]]


@dataclass(frozen=True, slots=True)
class Grant:
    """One device for one request; `consumed` is None unless the device is shared."""

    request: Request
    device: Device
    consumed: Mapping[str, Amount] | None


class SearchLimitReached(Exception):
    """The search was stopped before it had tried everything."""


class Budget:
    """Steps left, counted over all nodes of one allocation."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._left = steps

    def spend(self) -> None:
        """Raises SearchLimitReached when nothing is left."""
        if self._left == 0:
            raise SearchLimitReached
        self._left -= 1


class NodeSearch:
    """Tries every choice of devices for all requests of all claims, the preferred ones first.

    Within a request only ascending choices are tried, as the order of its devices means nothing.
    """

    def __init__(self, state: State, wanted: Sequence[Wanted], node: str, budget: Budget) -> None:
        self._state = state
        self._wanted = wanted
        self._node = node
        self._budget = budget
        self._taken = Holdings()
        self._grants: list[list[Grant]] = [[] for _ in wanted]
        self._pinned: dict[tuple[int, int], Attribute] = {}

    def run(self) -> tuple[tuple[Grant, ...], ...] | None:
        """The grants of each claim, or None where there is no way. Raises InvalidValue for a
        selector that cannot be evaluated, SearchLimitReached."""
        if any(len(self._candidates[slot.key]) < slot.request.count for slot in self._slots):
            return None
        if not self._place(0, 0):
            return None
        return tuple(tuple(grants) for grants in self._grants)

    @cached_property
    def _slots(self) -> list[_Slot]:
        return [
            _Slot(claim, number, request, request.count - nth)
            for claim, wanted in enumerate(self._wanted)
            for number, request in enumerate(wanted.requests)
            for nth in range(request.count)
        ]

    @cached_property
    def _candidates(self) -> dict[tuple[int, int], list[Candidate]]:
        found: dict[tuple[int, int], list[Candidate]] = {}
        for claim, wanted in enumerate(self._wanted):
            count = sum(request.count for request in wanted.requests)
            for number, request in enumerate(wanted.requests):
                free = self._free(request)
                found[claim, number] = ordered_devices(self._state, free, count)
        return found

    def _free(self, request: Request) -> list[Candidate]:
        free: list[Candidate] = []
        for device in self._state.inventory.by_node.get(self._node, ()):
            if self._state.standing(request, device) is Standing.FREE:
                consumed = consumption(request, device)
                assert consumed is not None  # a free device can serve the request
                free.append((device, consumed))
        return free

    def _place(self, position: int, start: int) -> bool:
        if position == len(self._slots):
            return True
        slot = self._slots[position]
        candidates = self._candidates[slot.key]
        last = position + 1 == len(self._slots) or self._slots[position + 1].key != slot.key
        for index in range(start, len(candidates) - slot.remaining + 1):
            self._budget.spend()
            device, consumed = candidates[index]
            if not has_room(
                device, consumed, self._state.inventory, self._state.holdings, self._taken
            ):
                continue
            pins = self._pins(slot, device)
            if pins is None:
                continue
            hold = self._take(slot, device, consumed, pins)
            if self._place(position + 1, 0 if last else index + 1):
                return True
            self._give_back(slot, hold, pins)
        return False

    def _pins(self, slot: _Slot, device: Device) -> dict[tuple[int, int], Attribute] | None:
        """The constraints' values that this device would be the first to set; None where it
        breaks one."""
        pins: dict[tuple[int, int], Attribute] = {}
        for number, constraint in enumerate(self._wanted[slot.claim].constraints):
            if not constraint.applies(slot.request.name):
                continue
            value = device.attributes.get(constraint.attribute)
            if value is None:
                return None
            pinned = self._pinned.get((slot.claim, number))
            if pinned is None:
                pins[slot.claim, number] = value
            elif pinned != value:
                return None
        return pins

    def _take(
        self,
        slot: _Slot,
        device: Device,
        consumed: Mapping[str, Amount],
        pins: dict[tuple[int, int], Attribute],
    ) -> Hold:
        shared = consumed if device.multiple else None
        amounts = None if shared is None else {name: each.value for name, each in shared.items()}
        hold = Hold(device.id, amounts)
        self._taken.add(hold)
        self._pinned.update(pins)
        self._grants[slot.claim].append(Grant(slot.request, device, shared))
        return hold

    def _give_back(self, slot: _Slot, hold: Hold, pins: dict[tuple[int, int], Attribute]) -> None:
        self._grants[slot.claim].pop()
        for key in pins:
            del self._pinned[key]
        self._taken.remove(hold)


@dataclass(frozen=True, slots=True)
class _Slot:
    """One device to find; `remaining` counts it and those after it in the same request."""

    claim: int
    number: int
    request: Request
    remaining: int

    @property
    def key(self) -> tuple[int, int]:
        return self.claim, self.number
