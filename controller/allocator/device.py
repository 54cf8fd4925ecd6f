"""A published device, as the allocator needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocator.capacity import Capacity
from dra_driver.model import names
from dra_driver.model.device import parse_device_name
from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput

Attribute = tuple[str, object]  # kind (string, int, bool, version) and value


@dataclass(frozen=True, slots=True, order=True)
class DeviceId:
    """A device of this driver; names are unique within a pool only."""

    pool: str
    name: str

    @property
    def card_by_name(self) -> str | None:
        """The card's PCI address as the name tells it: all that is left of a vanished device."""
        try:
            return str(parse_device_name(self.name)[1])
        except InvalidValue:
            return None


@dataclass(frozen=True, slots=True)
class Taint:
    """A device taint (resource.k8s.io/v1, DeviceTaint)."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Device:
    """One entry of a slice's ``spec.devices``.

    `card` is the attribute by which devices of a pool exclude each other, None where there is
    none. `attributes` have fully qualified names. A device that allows `multiple` allocations
    is shared by capacity.
    """

    id: DeviceId
    node: str
    card: str | None
    multiple: bool
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Capacity]
    taints: tuple[Taint, ...]
    selector_input: SelectorInput

    @classmethod
    def parse(cls, pool: str, node: str, entry: Mapping[str, Any]) -> Device:
        """Raises InvalidValue where a quantity is none."""
        attributes = {
            name if "/" in name else f"{names.DRIVER}/{name}": next(iter(value.items()))
            for name, value in (entry.get("attributes") or {}).items()
        }
        card = attributes.get(f"{names.DRIVER}/{names.ATTR_CARD}")
        return cls(
            id=DeviceId(pool, entry["name"]),
            node=node,
            card=str(card[1]) if card else None,
            multiple=bool(entry.get("allowMultipleAllocations")),
            attributes=attributes,
            capacity={
                name: Capacity.parse(value) for name, value in (entry.get("capacity") or {}).items()
            },
            taints=tuple(
                Taint(taint["key"], taint.get("value", ""), taint["effect"])
                for taint in entry.get("taints") or ()
            ),
            selector_input=SelectorInput.of(names.DRIVER, entry),
        )

    def text(self, attribute: str) -> str:
        """A string or int attribute of the driver as text; empty where there is none."""
        name = attribute if "/" in attribute else f"{names.DRIVER}/{attribute}"
        found = self.attributes.get(name)
        return "" if found is None else str(found[1])
