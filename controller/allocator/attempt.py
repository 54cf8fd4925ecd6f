"""What a search has chosen so far, on top of what is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.allocator.candidates import Candidate
from controller.allocator.counters import CounterLedger
from controller.allocator.device import CardKey, Device, DeviceId
from controller.allocator.state import State


class Asker(NamedTuple):
    """Who asks; in the order in which upstream serves them."""

    claim: int
    request: int
    admin_access: bool


@dataclass(frozen=True, slots=True)
class _Taken:
    candidate: Candidate
    on_card: bool
    paid: bool


class Attempt:
    """Choices are taken back in the reverse order only.

    As upstream's: administrative access passes by what is held. Within one attempt it passes by
    what earlier claims choose, not by what its own claim chooses; later requests see it like any
    other.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._stack: list[_Taken] = []
        self._askers: dict[DeviceId, list[Asker]] = {}
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._shares: dict[DeviceId, int] = {}
        self._on_card: dict[CardKey, list[DeviceId]] = {}
        self._ledgers: dict[str, CounterLedger] = {}

    def take(self, asker: Asker, candidate: Candidate) -> bool:
        """Choose the candidate; False if what was chosen before leaves no room."""
        device = candidate.device
        on_card = device.card is not None and not asker.admin_access
        if self._stack and not self._has_room(asker, candidate, on_card=on_card):
            return False
        paid = bool(device.counters) and not self.is_paid(device)
        if paid:
            ledger = self._ledger(device.id.pool)
            if not ledger.allows(device):
                return False
            ledger.take(device.counters)
        self._stack.append(_Taken(candidate, on_card, paid))
        self._enter(asker, candidate, on_card=on_card)
        return True

    def take_back(self) -> None:
        """The last choice."""
        taken = self._stack.pop()
        device = taken.candidate.device
        if taken.on_card:
            assert device.card is not None
            self._on_card[device.card].pop()
        if taken.paid:
            self._ledger(device.id.pool).give_back(device.counters)
        if not device.multiple:
            self._askers[device.id].pop()
            return
        self._shares[device.id] -= 1
        consumed = self._consumed[device.id]
        for name, amount, _ in taken.candidate.offer.amounts:
            consumed[name] -= amount

    def touches(self, device: Device) -> bool:
        """Whether anything of the device's card, or of the device itself, is chosen."""
        if device.card is not None and self._on_card.get(device.card):
            return True
        return bool(self._askers.get(device.id) or self._shares.get(device.id))

    def allows(self, device: Device) -> bool:
        """Whether counters allow the device, beside what was chosen."""
        if not device.counters or self.is_paid(device):
            return True
        return self._ledger(device.id.pool).allows(device)

    def is_paid(self, device: Device) -> bool:
        """A shared device consumes counters with its first share alone. Upstream (1.36.3) knows
        earlier shares by the capacity that they consume."""
        if not device.multiple:
            return False
        use = self._state.holdings.use(device.id)
        return bool(self._shares.get(device.id) or (use and use.consumed))

    def _has_room(self, asker: Asker, candidate: Candidate, *, on_card: bool) -> bool:
        device = candidate.device
        if device.multiple:
            if self._shares.get(device.id) and not self._has_capacity(candidate):
                return False
        elif any(_clash(asker, other) for other in self._askers.get(device.id, ())):
            return False
        if not on_card:
            return True
        assert device.card is not None
        return all(each == device.id for each in self._on_card.get(device.card, ()))

    def _has_capacity(self, candidate: Candidate) -> bool:
        use = self._state.holdings.use(candidate.device.id)
        held = use.consumed if use is not None else {}
        chosen = self._consumed[candidate.device.id]
        return all(
            held.get(name, 0) + chosen.get(name, 0) + amount <= total
            for name, amount, total in candidate.offer.amounts
        )

    def _enter(self, asker: Asker, candidate: Candidate, *, on_card: bool) -> None:
        device = candidate.device
        if on_card:
            assert device.card is not None
            self._on_card.setdefault(device.card, []).append(device.id)
        if not device.multiple:
            self._askers.setdefault(device.id, []).append(asker)
            return
        self._shares[device.id] = self._shares.get(device.id, 0) + 1
        consumed = self._consumed.setdefault(device.id, {})
        for name, amount, _ in candidate.offer.amounts:
            consumed[name] = consumed.get(name, 0) + amount

    def _ledger(self, pool: str) -> CounterLedger:
        ledger = self._ledgers.get(pool)
        if ledger is None:
            found = self._state.inventory.pool(pool)
            assert found is not None  # its device was published a moment ago
            ledger = self._ledgers[pool] = CounterLedger(found, self._state.holdings)
        return ledger


def _clash(one: Asker, other: Asker) -> bool:
    """Whether both cannot have one device that is not shared."""
    later = max(one, other)
    return not later.admin_access or one.claim == other.claim
