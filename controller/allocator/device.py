"""A published device, as the allocator needs it.

What devices of one make have in common stands in one `DeviceKind`, of which there are few in a
cluster. What tells a card from all others (its address, its UUID, its place) stands in the device.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from controller.allocator.capacity import Capacity
from controller.allocator.taints import Taint, TaintRule
from dra_driver.model import names
from dra_driver.model.device import parse_device_name
from dra_driver.model.device_shares import is_stripped, with_shares
from dra_driver.model.errors import InvalidValue
from dra_driver.model.topology import CardPlace
from dra_driver.selector.device import SelectorInput, Shape
from dra_driver.selector.values import Value

Entry = Mapping[str, Any]
CardKey = tuple[str, str]  # pool and the attribute `card`

_IDENTITY: Final = frozenset(
    {
        names.ATTR_CARD,
        names.ATTR_UUID,
        names.ATTR_PCIE_SWITCH,
        names.ATTR_PCIE_BRIDGES,
        names.ATTR_PCIE_ROOT,
        names.ATTR_PCI_BUS_ID,
        names.ATTR_NUMA_NODE,
    }
)
"""Attributes that are a device's own, all others being its kind's."""


class DeviceId(NamedTuple):
    """A device of this driver; names are unique within a pool only."""

    pool: str
    name: str

    @property
    def card_by_name(self) -> str | None:
        """The card's PCI address by the device's name: all that is left of a vanished device."""
        return _card_by_name(self.name)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value, or a list of values of one kind (lists are alpha in 1.36): compared as sets."""

    kind: str
    values: frozenset[Any]

    @classmethod
    def of(cls, kind: str, value: object) -> Attribute | None:
        """From a DeviceAttribute (resource.k8s.io/v1): the name of its only field, and the value; a
        list is a tuple. None if the kind is not known, or the list is empty."""
        if isinstance(value, tuple):
            return cls(kind.removesuffix("s"), frozenset(value)) if value else None
        return None if value is None else _scalar(kind, value)

    def common(self, other: Attribute) -> Attribute | None:
        """What both have, or None; values of different kinds have nothing in common."""
        if self.kind != other.kind:
            return None
        shared = self.values & other.values
        return Attribute(self.kind, shared) if shared else None


# typed: True and 1 are equal, and their kinds are not.
@lru_cache(4096, typed=True)
def _scalar(kind: str, value: object) -> Attribute:
    return Attribute(kind, frozenset((value,)))


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKind:
    """What devices of one make and state have in common; there is one object for each kind, so
    that what a request gets of it is computed once. A device of a kind that allows `multiple`
    allocations is shared by capacity. One that has `counters` is kube-scheduler's to allocate.

    `common` is what selectors read of each device of the kind, without the values of its own, which
    are those of the attributes `own_names` and stand at the positions `own`. `conditions` are the
    kind's binding conditions. With `keeps_shares` the API server keeps what an allocation says of
    shares.
    """

    multiple: bool
    keeps_shares: bool
    counters: bool
    capacity: Mapping[str, Capacity]
    taints: tuple[Taint, ...]
    conditions: Mapping[str, Any]
    common: SelectorInput
    own: tuple[int, ...]
    own_names: tuple[str, ...]

    def position(self, name: str) -> int | None:
        """Where the values of devices have the attribute of that fully qualified name; in the
        driver's own domain the qualified name comes first (upstream: lookupAttribute)."""
        return _positions(self.common.shape).get(name)

    def has(self, name: str) -> bool:
        """Whether devices of the kind have the attribute."""
        at = self.position(name)
        return at is not None and (at in self.own or self.attribute(name) is not None)

    def attribute(self, name: str) -> Attribute | None:
        """The attribute that all devices of the kind have; None if it is a device's own."""
        at = self.position(name)
        if at is None:  # a device's own value is None in `common`
            return None
        return Attribute.of(self.common.shape.entries[at].kind, self.common.values[at])

    def text(self, name: str) -> str:
        """An attribute of the kind as text; empty if there is none."""
        at = self.position(name)
        return "" if at is None or at in self.own else str(self.common.values[at])


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One entry of a slice's ``spec.devices``. `card` is the attribute by which devices of a pool
    exclude each other, None where there is none. `own` are the values of the card's own."""

    id: DeviceId
    kind: DeviceKind
    card: CardKey | None
    place: CardPlace
    own: tuple[Value, ...]

    @classmethod
    def parse(cls, pool: str, entry: Entry, rules: Sequence[TaintRule] = ()) -> Device:
        """`rules` are those that select the device. Raises InvalidValue where a quantity is
        none."""
        attributes = entry.get("attributes") or {}
        kind = _kind(entry, attributes, rules)
        card = _text(attributes, names.ATTR_CARD)
        return cls(
            id=DeviceId(pool, entry["name"]),
            kind=kind,
            card=_card(pool, card) if card else None,
            place=_place(*[_text(attributes, name) for name in _PLACE]),
            own=_same(tuple([_value(attributes[name]) for name in kind.own_names])),
        )

    @property
    def multiple(self) -> bool:
        return self.kind.multiple

    @property
    def selector_input(self) -> SelectorInput:
        """All that selectors can read of the device."""
        values = list(self.kind.common.values)
        for at, value in zip(self.kind.own, self.own, strict=True):
            values[at] = value
        return SelectorInput(self.kind.common.shape, tuple(values))

    def attribute(self, name: str) -> Attribute | None:
        """By its fully qualified name; None where there is none, or none that is known."""
        at = self.kind.position(name)
        if at is None:
            return None
        own = self.kind.own
        value = self.own[own.index(at)] if at in own else self.kind.common.values[at]
        return Attribute.of(self.kind.common.shape.entries[at].kind, value)

    def text(self, name: str) -> str:
        """A string or int attribute of the driver as text; empty where there is none."""
        found = self.attribute(name)
        return "" if found is None else str(next(iter(found.values)))


_PLACE: Final = (
    names.ATTR_PCIE_BRIDGES,
    names.ATTR_PCIE_SWITCH,
    names.ATTR_PCIE_ROOT,
    names.ATTR_NUMA_NODE,
)
_CONDITIONS: Final = ("bindingConditions", "bindingFailureConditions")
_KIND_FIELDS: Final = (
    "allowMultipleAllocations",
    "capacity",
    "consumesCounters",
    "taints",
    *_CONDITIONS,
)
_MOST_KINDS: Final = 4096
_kinds: dict[tuple[bytes, tuple[TaintRule, ...]], DeviceKind] = {}


@lru_cache(1024)
def _positions(shape: Shape) -> Mapping[str, int]:
    """Attributes by each name that means them: fully qualified, and of the driver's domain without
    it."""
    found: dict[str, int] = {}
    for at, entry in enumerate(shape.entries):
        if entry.path[0] == "attributes":
            _, domain, name = entry.path
            found.setdefault(f"{domain}/{name}", at)  # the qualified one is the first
            if domain == names.DRIVER:
                found.setdefault(name, at)
    return found


# The devices of a card come one after the other.
@lru_cache(64)
def _same(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return values


@lru_cache(64)
def _card(pool: str, card: str) -> CardKey:
    return pool, card


# The cards of a node are where those of most others are.
@lru_cache(4096)
def _place(bridges: str, switch: str, root: str, numa: str) -> CardPlace:
    number = int(numa) if numa.isdecimal() else None
    return CardPlace.of(bridges=bridges, switch=switch, root=root, numa=number)


def _text(attributes: Mapping[str, Any], name: str) -> str:
    found = attributes.get(name)
    return "" if not found else str(_value(found))


def _value(attribute: Mapping[str, Any]) -> Value:
    """Of an attribute of the device's own; of a list as a tuple."""
    value = next(iter(attribute.values()), None)
    return tuple(value) if isinstance(value, list) else value


def _kind(entry: Entry, attributes: Mapping[str, Any], rules: Sequence[TaintRule]) -> DeviceKind:
    """The one kind of devices of that content, but for the values of their own."""
    content = (
        {name: each for name, each in attributes.items() if name not in _IDENTITY},
        [(name, *each) for name, each in attributes.items() if name in _IDENTITY],
        [entry.get(field) for field in _KIND_FIELDS],
    )
    # In a format without references, which would tell apart equal objects. Other than a text, it is
    # written in two microseconds.
    key = marshal.dumps(content, 2), tuple(rules)
    found = _kinds.get(key)
    if found is None:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        found = _kinds[key] = _parse_kind(entry, attributes, rules)
    return found


def _parse_kind(
    entry: Entry, attributes: Mapping[str, Any], rules: Sequence[TaintRule]
) -> DeviceKind:
    taints = [*(entry.get("taints") or ()), *(rule.taint() for rule in rules)]
    keeps_shares = not is_stripped(entry)
    entry = with_shares(entry)
    read = SelectorInput.of(names.DRIVER, entry)
    positions = _positions(read.shape)
    own = {positions[name]: name for name in attributes if name in _IDENTITY}
    values = tuple(None if at in own else value for at, value in enumerate(read.values))
    return DeviceKind(
        multiple=bool(entry.get("allowMultipleAllocations")),
        keeps_shares=keeps_shares,
        counters=bool(entry.get("consumesCounters")),
        capacity={
            name: Capacity.parse(each) for name, each in (entry.get("capacity") or {}).items()
        },
        taints=tuple(
            Taint(each["key"], each.get("value", ""), each["effect"], each.get("rule", ""))
            for each in taints
        ),
        conditions={key: entry[key] for key in _CONDITIONS if entry.get(key)},
        common=SelectorInput(read.shape, values),
        own=tuple(own),
        own_names=tuple(own.values()),
    )


# A pool has the same names as most others.
@lru_cache(4096)
def _card_by_name(name: str) -> str | None:
    try:
        return str(parse_device_name(name)[1])
    except InvalidValue:
        return None
