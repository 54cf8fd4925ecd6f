"""A published device, as the allocator needs it.

What devices of one make have in common is in one `DeviceKind`; a cluster has few. What
distinguishes a card from all others (its address, its UUID, its place) is in the device.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from controller.allocator.capacity import Capacity
from controller.allocator.taints import Taint
from dra_driver.model import names
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.measures import Share, instance_shares, slice_shares
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.devices.device_shares import MAX_SLICES, is_stripped, with_shares
from dra_driver.model.devices.topology import CardPlace
from dra_driver.model.errors import InvalidValue
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
"""Attributes that are the own ones of a device of ours; all others are its kind's."""


class DeviceId(NamedTuple):
    """A device of one driver; names are unique within a pool only."""

    pool: str
    name: str

    @property
    def card_by_name(self) -> str | None:
        """The card's PCI address by the device's name: all that is known of an unpublished
        device. None if the name is none of this driver's."""
        try:
            return str(parse_device_name(self.name)[1])
        except InvalidValue:
            return None


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
    """What devices of one make and state have in common. There is one object for each kind, so that
    what a request gets of it is computed once. A device of a kind that allows `multiple`
    allocations is shared by capacity. If it has `counters`, only kube-scheduler allocates it. With
    `keeps_shares` the API server keeps what an allocation says about shares.

    `common` is what selectors read of each device of the kind, without the values of its own:
    those of the attributes `own_names`, at the positions `own`. `conditions` are the kind's binding
    conditions.
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

    @property
    def driver(self) -> str:
        """The name of the driver that publishes the devices."""
        return str(self.common.values[_DRIVER])

    @property
    def is_of_scheduler(self) -> bool:
        """Whether kube-scheduler allocates the devices, or did when the present claims got them: a
        card in use changes its allocator with its last claim (docs/adr/0027)."""
        return self.counters or any(each.key == names.TAINT_CHANGING for each in self.taints)

    @property
    def is_for_admins(self) -> bool:
        """Whether only claims with administrative access are to have the devices, which
        kube-scheduler allocates without counters (docs/adr/0040)."""
        return self.text(names.ATTR_TYPE) == names.TYPE_ADMIN

    def position(self, name: str) -> int | None:
        """The position of the attribute of that fully qualified name in the values of devices; in
        the driver's own domain the qualified name comes first (upstream: lookupAttribute)."""
        return _positions(self.common.shape).get(name)

    def has(self, name: str) -> bool:
        """Whether devices of the kind have the attribute."""
        return self.position(name) in self.own or self.attribute(name) is not None

    def attribute(self, name: str, own: Sequence[Value] = ()) -> Attribute | None:
        """By its fully qualified name; `own` has a device's own values. None if there is no such
        attribute, or it is a device's own and that has no values here."""
        at = self.position(name)
        if at is None:
            return None
        values = own if own and at in self.own else None
        value = self.common.values[at] if values is None else values[self.own.index(at)]
        return Attribute.of(self.common.shape.entries[at].kind, value)

    def text(self, name: str) -> str:
        """An attribute of the kind as text; empty if there is none."""
        found = self.attribute(name)
        return "" if found is None else str(next(iter(found.values)))

    @property
    def shared_capacity(self) -> str:
        """The capacity that claims share; empty for a whole card."""
        return next((name for name in CAPACITY_OF_MODE.values() if name in self.capacity), "")

    @property
    def shares(self) -> tuple[Share, ...]:
        """What the device is given out in, ascending, with memory and compute; nothing for a whole
        card, or where the device does not say it as agents do."""
        total = self.capacity[self.shared_capacity].total.units if self.shared_capacity else 0
        memory = self.text(names.ATTR_MEMORY_PER_SLICE_MIB)
        if memory.isdecimal():
            return slice_shares(total, int(memory)) if total <= MAX_SLICES else ()
        try:
            profiles = self.text(names.ATTR_PROFILES).split(",")
            return instance_shares(profiles, total) if total else ()
        except InvalidValue:
            return ()


def kind_of(entry: Entry) -> DeviceKind:
    """The kind of an entry of a slice's ``spec.devices``, without what DeviceTaintRules say of it;
    safe for any thread. Raises InvalidValue if a quantity is none."""
    return _kind(names.DRIVER, entry, _IDENTITY, ())


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One entry of a slice's ``spec.devices``. `card` is the attribute by which devices of a pool
    exclude each other, None if there is none. `own` are the values of the kind's `own_names`."""

    id: DeviceId
    kind: DeviceKind
    card: CardKey | None
    place: CardPlace
    own: tuple[Value, ...]

    @classmethod
    def parse(cls, pool: str, entry: Entry, taints: Sequence[Taint] = ()) -> Device:
        """A device of ours. `taints` are those that DeviceTaintRules set. Raises InvalidValue if a
        quantity is none."""
        attributes = entry.get("attributes") or {}
        kind = _kind(names.DRIVER, entry, _IDENTITY, tuple(taints))
        own = tuple([_value(attributes[name]) for name in kind.own_names])
        return cls(DeviceId(pool, entry["name"]), kind, *_identity(pool, kind.own_names, own))

    @classmethod
    def parse_other(
        cls, driver: str, pool: str, entry: Entry, taints: Sequence[Taint] = ()
    ) -> Device:
        """A device of another driver. All its attributes are its own, as nobody knows which of them
        devices of one make have in common. Raises as `parse`."""
        attributes = entry.get("attributes") or {}
        kind = _kind(driver, entry, attributes.keys(), tuple(taints))
        own = tuple([_value(attributes[name]) for name in kind.own_names])
        return cls(DeviceId(pool, entry["name"]), kind, None, _place("", "", "", ""), own)

    @property
    def driver(self) -> str:
        return self.kind.driver

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
        """By its fully qualified name; None if there is none, or none of a known kind."""
        return self.kind.attribute(name, self.own)


_PLACE: Final = (
    names.ATTR_PCIE_BRIDGES,
    names.ATTR_PCIE_SWITCH,
    names.ATTR_PCIE_ROOT,
    names.ATTR_NUMA_NODE,
)
_DRIVER: Final = 0  # the driver's position in what selectors read (`SelectorInput.of`)
_CONDITIONS: Final = ("bindingConditions", "bindingFailureConditions")
_KIND_FIELDS: Final = (
    "allowMultipleAllocations",
    "capacity",
    "consumesCounters",
    *_CONDITIONS,
)
_MOST_KINDS: Final = 4096
_kinds: dict[tuple[bytes, tuple[Taint, ...]], DeviceKind] = {}


@lru_cache(1024)
def _positions(shape: Shape) -> Mapping[str, int]:
    """Attributes by their names: fully qualified, and in the driver's domain also unqualified."""
    positions: dict[str, int] = {}
    for at, entry in enumerate(shape.entries):
        if entry.path[0] == "attributes":
            _, domain, name = entry.path
            positions.setdefault(f"{domain}/{name}", at)  # the qualified one is the first
            if domain == names.DRIVER:
                positions.setdefault(name, at)
    return positions


# The devices of a card, which have equal values, come one after the other.
@lru_cache(64)
def _identity(
    pool: str, own_names: tuple[str, ...], own: tuple[Value, ...]
) -> tuple[CardKey | None, CardPlace, tuple[Value, ...]]:
    """The fields `card`, `place` and `own` of a device with these values of its own."""
    texts = {
        name: str(value) for name, value in zip(own_names, own, strict=True) if value is not None
    }
    card = texts.get(names.ATTR_CARD)
    return (pool, card) if card else None, _place(*[texts.get(name, "") for name in _PLACE]), own


# Most nodes have their cards at the same places.
@lru_cache(4096)
def _place(bridges: str, switch: str, root: str, numa: str) -> CardPlace:
    number = int(numa) if numa.isdecimal() else None
    return CardPlace.of(bridges=bridges, switch=switch, root=root, numa=number)


def _value(attribute: Mapping[str, Any]) -> Value:
    """The value of an attribute of the device's own; a list as a tuple."""
    value = next(iter(attribute.values()), None)
    return tuple(value) if isinstance(value, list) else value


def _kind(
    driver: str, entry: Entry, own: AbstractSet[str], taints: tuple[Taint, ...]
) -> DeviceKind:
    """The one kind of devices with that content, apart from the values of their `own`
    attributes."""
    attributes = entry.get("attributes") or {}
    content = (
        driver,
        [(name, *each) if name in own else (name, each) for name, each in attributes.items()],
        [entry.get(field) for field in _KIND_FIELDS],
        # Without `timeAdded`, which the API server sets: it differs on every node.
        [(each["key"], each.get("value"), each["effect"]) for each in entry.get("taints") or ()],
    )
    # In a format without references, which would distinguish equal objects. It takes two
    # microseconds, much less than JSON.
    key = marshal.dumps(content, 2), taints
    kind = _kinds.get(key)
    if kind is None:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        # Another thread may have been quicker.
        kind = _kinds.setdefault(key, _parse_kind(driver, entry, own, taints))
    return kind


def _parse_kind(
    driver: str, entry: Entry, own_names: AbstractSet[str], taints: tuple[Taint, ...]
) -> DeviceKind:
    keeps_shares = driver != names.DRIVER or not is_stripped(entry)
    entry = with_shares(entry) if driver == names.DRIVER else entry
    read = SelectorInput.of(driver, entry)
    # `SelectorInput` has them in the order of their names.
    places = [at for at, each in enumerate(read.shape.entries) if each.path[0] == "attributes"]
    named = zip(places, sorted(entry.get("attributes") or ()), strict=True)
    own = {at: name for at, name in named if name in own_names}
    values = tuple(None if at in own else value for at, value in enumerate(read.values))
    capacity = entry.get("capacity") or {}
    return DeviceKind(
        multiple=bool(entry.get("allowMultipleAllocations")),
        keeps_shares=keeps_shares,
        counters=bool(entry.get("consumesCounters")),
        capacity={name: Capacity.parse(each) for name, each in capacity.items()},
        taints=(*map(Taint.parse, entry.get("taints") or ()), *taints),
        conditions={key: entry[key] for key in _CONDITIONS if entry.get(key)},
        common=SelectorInput(read.shape, values),
        own=tuple(own),
        own_names=tuple(own.values()),
    )
