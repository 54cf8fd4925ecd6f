"""What a search looks for, what it has chosen so far on top of what is held, and what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.allocator.capacity import Amount
from controller.allocator.claim_request import ExactRequest
from controller.allocator.device import CardKey, Device, DeviceId
from controller.allocator.order import Candidate, Order, Score
from dra_driver.selector.allowance import Allowance

_SHARE = 10  # one node gets a tenth, so that a hard node does not keep others from being tried
_STRIDE = 32  # choices between two looks at the allowance; less than a millisecond


class SearchLimitReached(Exception):
    """The search was stopped before it had tried everything."""


class Budget:
    """How many choices may turn out wrong, over all nodes of one decision. `allowance` is what the
    decision may take in all; its end is no answer for any node."""

    def __init__(self, steps: int, allowance: Allowance) -> None:
        self.steps = steps
        self.per_node = max(1, steps // _SHARE)
        self.spent = 0
        self._allowance = allowance
        self._until = self._next_limit()

    def check(self) -> None:
        """Raises AllowanceSpent where the decision has taken too long; for what takes time and is
        no choice."""
        self._allowance.check()

    def begin_node(self) -> None:
        """What follows is spent on another node. Raises AllowanceSpent."""
        self.check()
        self._until = self._next_limit()

    def spend(self) -> None:
        """Raises SearchLimitReached where nothing is left for the node, AllowanceSpent where the
        decision has taken too long."""
        if self.spent >= self._until:
            raise SearchLimitReached
        self.spent += 1
        if not self.spent % _STRIDE:
            self.check()

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left for other nodes either."""
        return self.spent >= self.steps

    def _next_limit(self) -> int:
        return min(self.steps, self.spent + self.per_node)


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """One device for one request; `consumed` is None unless the device is shared."""

    request: ExactRequest
    device: Device
    consumed: Mapping[str, Amount] | None


DeviceAssignments = tuple[
    tuple[DeviceAssignment, ...], ...
]  # of each claim, in the order of its requests


@dataclass(frozen=True, slots=True)
class Task:
    """`count` devices to find for a request, the `alternative` of that number. `repeats` says that
    the task before asks the same, so that the two are not tried in both orders."""

    claim: int
    number: int
    request: ExactRequest
    alternative: int
    candidates: Sequence[Candidate]
    count: int
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a node would give. `alternatives` is the sum of the indices of those that were taken."""

    chosen: Sequence[tuple[Task, Candidate]]
    alternatives: int

    def score(self, order: Order) -> Score:
        """What administrative access gets does not count."""
        given = [
            (task.request.demand, candidate)
            for task, candidate in self.chosen
            if not task.request.demand.admin_access
        ]
        return order.score(given, self.alternatives)

    def grants(self, claims: int) -> DeviceAssignments:
        grants: list[list[DeviceAssignment]] = [[] for _ in range(claims)]
        for task, candidate in sorted(self.chosen, key=lambda each: each[0].number):
            shared = candidate.offer.consumed if candidate.device.multiple else None
            grants[task.claim].append(DeviceAssignment(task.request, candidate.device, shared))
        return tuple(tuple(each) for each in grants)


class Asker(NamedTuple):
    """Who asks; in the order in which upstream serves them."""

    claim: int
    request: int
    admin_access: bool


class SearchState:
    """Choices are taken back in the reverse order only.

    As upstream's: administrative access passes by what is held. Within one search it passes by
    what earlier claims choose, not by what its own claim chooses; later requests see it like any
    other.
    """

    def __init__(self) -> None:
        self._chosen: list[tuple[Candidate, CardKey | None]] = []
        self._askers: dict[DeviceId, list[Asker]] = {}
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._shares: dict[DeviceId, int] = {}
        self._on_card: dict[CardKey, list[DeviceId]] = {}

    def take(self, asker: Asker, candidate: Candidate) -> bool:
        """Choose the candidate; False if what was chosen before leaves no room."""
        device = candidate.device
        card = None if asker.admin_access else device.card
        if self._chosen and not self._has_room(asker, candidate, card):
            return False
        self._chosen.append((candidate, card))
        if card is not None:
            self._on_card.setdefault(card, []).append(device.id)
        if not device.multiple:
            self._askers.setdefault(device.id, []).append(asker)
            return True
        self._shares[device.id] = self._shares.get(device.id, 0) + 1
        consumed = self._consumed.setdefault(device.id, {})
        for name, amount, _ in candidate.offer.amounts:
            consumed[name] = consumed.get(name, 0) + amount
        return True

    def take_back(self) -> None:
        """The last choice."""
        candidate, card = self._chosen.pop()
        device = candidate.device
        if card is not None:
            self._on_card[card].pop()
        if not device.multiple:
            self._askers[device.id].pop()
            return
        self._shares[device.id] -= 1
        consumed = self._consumed[device.id]
        for name, amount, _ in candidate.offer.amounts:
            consumed[name] -= amount

    def touches(self, device: Device) -> bool:
        """Whether anything of the device's card, or of the device itself, is chosen."""
        if device.card is not None and self._on_card.get(device.card):
            return True
        return bool(self._askers.get(device.id) or self._shares.get(device.id))

    def _has_room(self, asker: Asker, candidate: Candidate, card: CardKey | None) -> bool:
        device = candidate.device
        if device.multiple:
            if self._shares.get(device.id) and not self._has_capacity(candidate):
                return False
        elif any(_clash(asker, other) for other in self._askers.get(device.id, ())):
            return False
        return card is None or all(each == device.id for each in self._on_card.get(card, ()))

    def _has_capacity(self, candidate: Candidate) -> bool:
        held: Mapping[str, int] = candidate.use.consumed if candidate.use is not None else {}
        chosen = self._consumed[candidate.device.id]
        return all(
            held.get(name, 0) + chosen.get(name, 0) + amount <= total
            for name, amount, total in candidate.offer.amounts
        )


def _clash(one: Asker, other: Asker) -> bool:
    """Whether both cannot have one device that is not shared."""
    later = max(one, other)
    return not later.admin_access or one.claim == other.claim
