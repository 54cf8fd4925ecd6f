"""A pool's slices as one thing (upstream: GatherPools and buildPool, 1.36.3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from controller.allocator.amount import Amount
from controller.allocator.device import Device, card_of
from controller.allocator.node_scope import NodeScope
from controller.allocator.taint_rules import TaintRule
from dra_driver.model.errors import InvalidValue

Slice = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pool:
    """The slices of the newest generation. `counters` maps (counter set, counter) to nano units.

    A pool with a `problem`, in words, gives out nothing; its `scopes` still say on which nodes it
    would, as a request for all devices must wait for it there.
    """

    name: str
    scopes: frozenset[str] | None  # None: not told by names of nodes alone
    devices: tuple[Device, ...] = ()
    counters: Mapping[tuple[str, str], int] | None = None
    problem: str = ""

    @classmethod
    def build(cls, name: str, slices: Sequence[Slice], rules: Sequence[TaintRule] = ()) -> Pool:
        """From all known slices of the pool, at least one, and the `rules` that select the pool.
        Devices keep upstream's order: slices by name, then as they are listed."""
        newest = max(each["spec"]["pool"]["generation"] for each in slices)
        current = [each for each in slices if each["spec"]["pool"]["generation"] == newest]
        current.sort(key=lambda each: str(each["metadata"]["name"]))
        nodes = [scope.node for each in current for scope in _scopes(each)]
        scopes = frozenset(nodes) if all(nodes) else None
        try:
            _check_complete(name, current)
            devices = tuple(_devices(name, current, rules))
            counters = _counters(name, current)
            _check_devices(name, devices, counters)
        except InvalidValue as error:
            return cls(name, scopes, problem=str(error))
        return cls(name, scopes, devices, counters or None)

    @classmethod
    def unreadable(cls, name: str, slices: Iterable[Slice]) -> Pool:
        """Where `build` fails by a fault of ours."""
        nodes = frozenset(node for each in slices if (node := each["spec"].get("nodeName")))
        return cls(name, nodes, problem=f"pool {name} cannot be read: see the controller's log")


def _check_complete(name: str, current: Sequence[Slice]) -> None:
    wanted = current[0]["spec"]["pool"]["resourceSliceCount"]
    if len(current) != wanted:
        generation = current[0]["spec"]["pool"]["generation"]
        raise InvalidValue(
            f"pool {name} is incomplete: {len(current)} of {wanted} slices of "
            f"generation {generation}"
        )


def _scopes(each: Slice) -> Iterator[NodeScope]:
    spec = each["spec"]
    if spec.get("perDeviceNodeSelection"):
        yield from (NodeScope.parse(entry) for entry in spec.get("devices") or ())
    elif not spec.get("sharedCounters"):
        yield NodeScope.parse(spec)


def _devices(pool: str, slices: Sequence[Slice], rules: Sequence[TaintRule]) -> Iterator[Device]:
    on_card: dict[str, list[str]] = defaultdict(list)
    for each in slices:
        for entry in each["spec"].get("devices") or ():
            card = card_of(entry)
            if card is not None:
                on_card[card].append(entry["name"])
    for each in slices:
        spec = each["spec"]
        shared_scope = NodeScope.parse(spec)
        for entry in spec.get("devices") or ():
            scope = NodeScope.parse(entry) if spec.get("perDeviceNodeSelection") else shared_scope
            others = on_card.get(card_of(entry) or "", ())
            siblings = _alike(tuple(other for other in others if other != entry["name"]))
            tainting = [rule for rule in rules if rule.selects(entry["name"])]
            yield Device.parse(pool, scope, entry, siblings, tainting)


@lru_cache(4096)
def _alike(siblings: tuple[str, ...]) -> tuple[str, ...]:
    """The same for devices of the same names: a pool has those of most others."""
    return siblings


def _counters(pool: str, slices: Sequence[Slice]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    known: set[str] = set()
    for each in slices:
        for counter_set in each["spec"].get("sharedCounters") or ():
            name = counter_set["name"]
            if name in known:
                raise InvalidValue(f"pool {pool} is invalid: it has counter set {name} twice")
            known.add(name)
            for counter, entry in counter_set["counters"].items():
                found[name, counter] = Amount.parse(str(entry["value"])).value
    return found


def _check_devices(
    pool: str, devices: Sequence[Device], counters: Mapping[tuple[str, str], int]
) -> None:
    twice = [name for name, count in Counter(each.id.name for each in devices).items() if count > 1]
    if twice:
        raise InvalidValue(f"pool {pool} is invalid: it lists device {min(twice)} twice")
    for device in devices:
        for use in device.counters:
            if use.counter not in counters:
                raise InvalidValue(
                    f"pool {pool} is invalid: device {device.id.name} consumes counter "
                    f"{'/'.join(use.counter)}, which it does not have"
                )
