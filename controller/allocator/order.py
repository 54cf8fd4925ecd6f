"""In which order nodes and devices are tried: the first that fits is taken.

Nodes: the one with the fewest free cards first, then by name, so that whole cards are taken
where the least stays free afterwards and other nodes stay whole.
Devices that can be shared: those in use before free ones, the least left first.
Whole cards: of one PCIe switch where one has enough (of those the one with the fewest), else of
one NUMA node, else from the fullest NUMA node on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from controller.allocator.capacity import Amount
from controller.allocator.device import Device
from controller.allocator.state import State
from controller.allocator.taints import untolerated
from dra_driver.model.names import ATTR_NUMA_NODE, ATTR_PCIE_SWITCH


def ordered_nodes(state: State, nodes: Iterable[str]) -> list[str]:
    """`nodes` in the order in which they are tried."""
    return sorted(nodes, key=lambda node: (free_cards(state, node), node))


def free_cards(state: State, node: str) -> int:
    """Cards of the node of which nothing is held and that nothing but our own taint marks."""
    used: dict[tuple[str, str], bool] = {}
    for device in state.inventory.by_node.get(node, ()):
        card = (device.id.pool, device.card or device.id.name)
        busy = state.holdings.holds(device.id) or bool(untolerated(device, ()))
        used[card] = used.get(card, False) or busy
    return sum(not busy for busy in used.values())


def ordered_devices(
    state: State, candidates: Sequence[tuple[Device, Mapping[str, Amount]]], count: int
) -> list[tuple[Device, Mapping[str, Amount]]]:
    """`candidates` (with what a grant consumes of them) for a claim of `count` whole cards."""
    switches = Counter(_switch(device) for device, _ in candidates)
    numa = Counter(_numa(device) for device, _ in candidates)

    def place(device: Device) -> tuple[object, ...]:
        in_switch, in_numa = switches[_switch(device)], numa[_numa(device)]
        if _switch(device) and in_switch >= count:
            return 0, in_switch, 0, _switch(device), _numa(device), device.id.name
        if _numa(device) and in_numa >= count:
            return 1, in_numa, -in_switch, _numa(device), _switch(device), device.id.name
        return 2, -in_numa, -in_switch, _numa(device), _switch(device), device.id.name

    def key(candidate: tuple[Device, Mapping[str, Amount]]) -> tuple[object, ...]:
        device, consumed = candidate
        return (*_left(state, device, consumed), *place(device))

    return sorted(candidates, key=key)


def _left(state: State, device: Device, consumed: Mapping[str, Amount]) -> tuple[int, Fraction]:
    if not device.multiple:
        return 0, Fraction(0)
    in_use = state.holdings.holds(device.id)
    left = sum(
        (
            (capacity.total.value - state.holdings.consumed(device.id, name) - consumed[name].value)
            / capacity.total.value
            for name, capacity in device.capacity.items()
            if capacity.total.value
        ),
        Fraction(0),
    )
    return (0 if in_use else 1), left


def _switch(device: Device) -> str:
    return device.text(ATTR_PCIE_SWITCH)


def _numa(device: Device) -> str:
    return device.text(ATTR_NUMA_NODE)
