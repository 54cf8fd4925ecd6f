"""All that an allocation is decided on, and what it says of one device for one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from controller.allocator.capacity import Amount
from controller.allocator.device import Device
from controller.allocator.holdings import Holdings
from controller.allocator.inventory import Inventory
from controller.allocator.request import Request
from controller.allocator.taints import untolerated
from dra_driver.model.claim import Object
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.selector.selector import Selectors


class Standing(Enum):
    """How a device stands to a request; the value is the word for people."""

    FREE = "free"
    HELD = "held"
    UNHEALTHY = "unhealthy"
    TAINTED = "tainted"
    TOO_SMALL = "without the capacity asked"
    NOT_SELECTED = "not selected"


@dataclass(frozen=True, slots=True)
class State:
    """The cluster as the allocator sees it. `classes` maps a name to the DeviceClass."""

    inventory: Inventory
    holdings: Holdings
    classes: Mapping[str, Object]
    selectors: Selectors

    def selects(self, request: Request, device: Device) -> bool:
        """Class and request selectors, in order, the first that is false deciding. Raises
        InvalidValue for one that cannot be evaluated."""
        return all(
            self.selectors.matches(expression, device.selector_input)
            for expression in request.selectors
        )

    def standing(self, request: Request, device: Device) -> Standing:
        """Raises InvalidValue where a selector cannot be evaluated."""
        if not self.selects(request, device):
            return Standing.NOT_SELECTED
        consumed = consumption(request, device)
        if consumed is None:
            return Standing.TOO_SMALL
        if not has_room(device, consumed, self.inventory, self.holdings):
            return Standing.HELD
        taints = untolerated(device, request.tolerations)
        if not taints:
            return Standing.FREE
        unhealthy = any(taint.key == TAINT_UNHEALTHY for taint in taints)
        return Standing.UNHEALTHY if unhealthy else Standing.TAINTED


def consumption(request: Request, device: Device) -> Mapping[str, Amount] | None:
    """What a grant consumes of each capacity; None where the device can never serve the request.

    Of a device for one claim alone nothing is counted, but what is asked must still fit.
    """
    if request.capacity.keys() - device.capacity.keys():
        return None
    consumed: dict[str, Amount] = {}
    for name, capacity in device.capacity.items():
        amount = capacity.consumed(request.capacity.get(name))
        if amount is None or amount.value > capacity.total.value:
            return None
        consumed[name] = amount
    return consumed


def has_room(
    device: Device, consumed: Mapping[str, Amount], inventory: Inventory, *held: Holdings
) -> bool:
    """Whether the device can still be granted beside everything that is held."""
    for each in held:
        in_use = each.holds_whole(device.id) if device.multiple else each.holds(device.id)
        if in_use or each.excluded(device, inventory):
            return False
    if not device.multiple:
        return True
    return all(
        sum(each.consumed(device.id, name) for each in held) + amount.value
        <= device.capacity[name].total.value
        for name, amount in consumed.items()
    )
