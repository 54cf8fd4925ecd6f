"""A published device, as the allocator needs it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from controller.allocator.amount import Amount
from controller.allocator.attribute import Attribute
from controller.allocator.capacity import Capacity
from controller.allocator.node_scope import NodeScope
from controller.allocator.taint_rules import TaintRule
from dra_driver.model import names
from dra_driver.model.device import parse_device_name
from dra_driver.model.errors import InvalidValue
from dra_driver.model.topology import CardPlace
from dra_driver.selector.device import SelectorInput

Entry = Mapping[str, Any]
CardKey = tuple[str, str]  # pool and the attribute `card`


class DeviceId(NamedTuple):
    """A device of this driver; names are unique within a pool only. A tuple, because it is
    hashed some hundred times in a decision."""

    pool: str
    name: str

    @property
    def card_by_name(self) -> str | None:
        """The card's PCI address as the name tells it: all that is left of a vanished device."""
        return _card_by_name(self.name)


@dataclass(frozen=True, slots=True)
class Taint:
    """A device taint (resource.k8s.io/v1, DeviceTaint). `rule` is the name of the DeviceTaintRule
    that sets it; empty for a published one."""

    key: str
    value: str
    effect: str
    rule: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKind:
    """What devices of one make and state have in common; there is one object for each kind, so
    that what a request gets of it is reckoned once. A device of a kind that allows `multiple`
    allocations is shared by capacity."""

    multiple: bool
    capacity: Mapping[str, Capacity]
    taints: tuple[Taint, ...]


@dataclass(frozen=True, slots=True)
class CounterUse:
    """What a device consumes of one counter of its pool."""

    counter: tuple[str, str]  # counter set and counter
    amount: int  # nano units


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One entry of a slice's ``spec.devices``, kept as it stands in `entry`.

    `card` is the attribute by which devices of a pool exclude each other, None where there is
    none; `siblings` are the names of those others.
    """

    id: DeviceId
    scope: NodeScope
    kind: DeviceKind
    card: CardKey | None
    siblings: tuple[str, ...]
    place: CardPlace
    counters: tuple[CounterUse, ...]
    selector_input: SelectorInput
    entry: Entry

    @classmethod
    def parse(
        cls,
        pool: str,
        scope: NodeScope,
        entry: Entry,
        siblings: tuple[str, ...] = (),
        rules: Sequence[TaintRule] = (),
    ) -> Device:
        """`rules` are those that select the device. Raises InvalidValue where a quantity is
        none."""
        card = card_of(entry)
        return cls(
            id=DeviceId(pool, entry["name"]),
            scope=scope,
            kind=_kind(_kind_content(entry, rules)),
            card=None if card is None else _card(pool, card),
            siblings=siblings,
            place=_place(*(_text(entry, name) for name in _PLACE_ATTRIBUTES)),
            counters=tuple(
                CounterUse((each["counterSet"], name), Amount.parse(str(counter["value"])).value)
                for each in entry.get("consumesCounters") or ()
                for name, counter in each["counters"].items()
            ),
            selector_input=SelectorInput.of(names.DRIVER, entry),
            entry=entry,
        )

    @property
    def multiple(self) -> bool:
        return self.kind.multiple

    def attribute(self, name: str) -> Attribute | None:
        """By its fully qualified name; None where there is none, or none that is known."""
        found = _lookup(self.entry, name)
        return None if found is None else Attribute.parse(found)

    def text(self, attribute: str) -> str:
        """A string or int attribute of the driver as text; empty where there is none."""
        return _text(self.entry, attribute)


def card_of(entry: Entry) -> str | None:
    """The card that a published device belongs to."""
    return _text(entry, names.ATTR_CARD) or None


_KIND_FIELDS = ("allowMultipleAllocations", "capacity", "taints")
_PLACE_ATTRIBUTES = (
    names.ATTR_PCIE_BRIDGES,
    names.ATTR_PCIE_SWITCH,
    names.ATTR_PCIE_ROOT,
    names.ATTR_NUMA_NODE,
)


# The cards of a node are where those of most others are.
@lru_cache(4096)
def _place(bridges: str, switch: str, root: str, numa: str) -> CardPlace:
    number = int(numa) if numa.isdecimal() else None
    return CardPlace.of(bridges=bridges, switch=switch, root=root, numa=number)


# The devices of a card come one after the other.
@lru_cache(64)
def _card(pool: str, card: str) -> CardKey:
    return pool, card


def _kind_content(entry: Entry, rules: Sequence[TaintRule]) -> str:
    multiple, capacity, taints = (entry.get(key) for key in _KIND_FIELDS)
    if rules:
        taints = [*(taints or ()), *(rule.taint() for rule in rules)]
    return json.dumps([multiple, capacity, taints], sort_keys=True)


@lru_cache(1024)
def _kind(content: str) -> DeviceKind:
    multiple, capacity, taints = json.loads(content)
    return DeviceKind(
        multiple=bool(multiple),
        capacity={name: Capacity.parse(each) for name, each in (capacity or {}).items()},
        taints=tuple(
            Taint(each["key"], each.get("value", ""), each["effect"], each.get("rule", ""))
            for each in taints or ()
        ),
    )


def _lookup(entry: Entry, name: str) -> Mapping[str, Any] | None:
    """Upstream's lookupAttribute: the qualified name first, then the driver's own domain."""
    attributes: Mapping[str, Any] = entry.get("attributes") or {}
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = names.DRIVER, name
    found: Mapping[str, Any] | None = attributes.get(f"{domain}/{identifier}")
    if found is None and domain == names.DRIVER:
        found = attributes.get(identifier)
    return found


def _text(entry: Entry, name: str) -> str:
    found = _lookup(entry, name)
    return "" if not found else str(next(iter(found.values())))


# A pool has the same names as most others.
@lru_cache(4096)
def _card_by_name(name: str) -> str | None:
    try:
        return str(parse_device_name(name)[1])
    except InvalidValue:
        return None
