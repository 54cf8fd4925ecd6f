"""Which selector of a request no device meets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from controller.allocator.device import Device
from controller.allocator.device_request import DeviceRequest
from controller.allocator.nodes.node_set import NodeSet, numbers
from controller.allocator.state import State
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors
from kubectl_gcu.words import first_of

_COMPARED: Final = re.compile(r'device\.attributes\["([^"]+)"\]\.(\w+)\s*==')
_MOST_VALUES: Final = 3


def unmet_selector(state: State, asked: DeviceRequest, nodes: NodeSet) -> str:
    """The first selector that no device of the `nodes` meets, with the values that they have of the
    attributes that it compares; empty if each selector alone selects some, one has an error, the
    nodes have no device, or the request is for devices of another driver."""
    devices = [
        device
        for node in map(state.fleet.at, numbers(nodes & state.fleet.all_nodes))
        for card in node.cards
        for device in card.devices
    ]
    if state.selectors.excludes(asked.selectors, DRIVER):
        return ""  # it is for another driver's devices
    if not devices:
        return ""
    with suppress(InvalidValue):
        for expression in asked.selectors:
            if not _is_met(state.selectors, expression, devices):
                has = "; ".join(_values(expression, devices))
                return f"{expression}, which no device meets{': ' * bool(has)}{has}"
    return ""


def _is_met(selectors: Selectors, expression: str, devices: Sequence[Device]) -> bool:
    return any(selectors.matches(expression, each.selector_input) for each in devices)


def _values(expression: str, devices: Sequence[Device]) -> Iterator[str]:
    """Such as ``model is S60 on all``, of each attribute that devices have."""
    for domain, name in dict.fromkeys(_COMPARED.findall(expression)):
        attributes = [each.attribute(f"{domain}/{name}") for each in devices]
        values = sorted({_in_cel(value) for each in attributes if each for value in each.values})
        if values:
            on_all = " on all" if len(values) == 1 and None not in attributes else ""
            others = "other" if len(values) == _MOST_VALUES + 1 else "others"
            yield f"{name} is {first_of(values, _MOST_VALUES, others)}{on_all}"


def _in_cel(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
