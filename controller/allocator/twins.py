"""Devices of a node that a search need not tell apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from controller.allocator.candidates import Candidate
from controller.allocator.demand import Demand
from controller.allocator.device import Device, DeviceId
from controller.allocator.request import Wanted
from controller.allocator.state import State


class Twins:
    """Two devices are twins where everything that the search reads of them, and of the other
    devices of their cards, is the same: where one of them leads nowhere, so does the other, as
    long as nothing of either card is chosen."""

    def __init__(
        self,
        state: State,
        wanted: Sequence[Wanted],
        candidates: Mapping[Demand, Sequence[Candidate] | None],
        node: str,
    ) -> None:
        self._state = state
        self._attributes = sorted({c.attribute for each in wanted for c in each.constraints})
        self._serves: dict[DeviceId, list[int]] = {}
        for number, found in enumerate(candidates.values()):
            for candidate in found or ():
                self._serves.setdefault(candidate.device.id, []).append(number)
        self._known: dict[DeviceId, object] = {}
        self._devices = {
            device.id: device for device in state.inventory.devices_of(node, state.nodes.get(node))
        }

    def of(self, device: Device) -> object:
        """Equal for twins."""
        known = self._known.get(device.id)
        if known is None:
            ids = [DeviceId(device.id.pool, name) for name in device.siblings]
            siblings = [self._devices[each] for each in ids if each in self._devices]
            known = self._known[device.id] = (
                self._alone(device),
                frozenset(Counter(self._alone(each) for each in siblings).items()),
            )
        return known

    def _alone(self, device: Device) -> object:
        if device.counters:
            return device.id  # the others that its counters touch are not looked at
        use = self._state.holdings.use(device.id)
        return (
            device.kind,
            device.card is None,
            tuple(self._serves.get(device.id, ())),
            frozenset(use.consumed.items()) if use is not None else None,
            tuple(device.attribute(name) for name in self._attributes),
        )
