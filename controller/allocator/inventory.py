"""What is published: the devices of complete pools, by node, kept up to date slice by slice
(upstream: GatherPools and buildPool, 1.36.3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from controller.allocator.device import Device
from controller.allocator.taints import TaintRule
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER

Slice = Mapping[str, Any]
Isolate = Callable[[Slice], AbstractContextManager[None]]
_PREFIX: Final = f"{DRIVER}/"  # of a pool's name; the node's name follows


def _not_isolated(_: Slice) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Pool:
    """The slices of the newest generation, all of one `node`. A pool with a `problem`, in words,
    gives out nothing; a request for all devices must wait for it."""

    name: str
    node: str
    devices: tuple[Device, ...] = ()
    problem: str = ""

    @classmethod
    def build(cls, name: str, slices: Sequence[Slice], rules: Sequence[TaintRule] = ()) -> Pool:
        """From all known slices of the pool, at least one, and the `rules` that select the pool.
        Devices keep upstream's order: slices by name, then as they are listed."""
        node = _node_of(name, slices)
        try:
            current = _newest(name, slices)
            _check_node(name, node, current)
            devices = tuple(_devices(name, current, rules))
        except InvalidValue as error:
            return cls(name, node, problem=str(error))
        return cls(name, node, devices)

    @classmethod
    def unreadable(cls, name: str, slices: Sequence[Slice]) -> Pool:
        """Where `build` fails by a fault of ours."""
        problem = f"pool {name} cannot be read: see the controller's log"
        return cls(name, _node_of(name, slices), problem=problem)


class Inventory:
    """Devices of this driver. Reading settles what was put or removed before. A pool that cannot
    be read, `isolate` having ended the attempt, is one with a problem.
    """

    def __init__(self, isolate: Isolate = _not_isolated) -> None:
        self._isolate = isolate
        self._watchers: list[set[str]] = []
        self._slices: defaultdict[str, dict[str, Slice]] = defaultdict(dict)
        self._rules: dict[str, TaintRule] = {}
        self._unsettled: dict[str, Slice] = {}
        self._pools: dict[str, Pool] = {}
        self._problems: dict[str, str] = {}
        self._by_node: defaultdict[str, dict[str, Pool]] = defaultdict(dict)

    @classmethod
    def of(cls, slices: Iterable[Slice]) -> Inventory:
        found = cls()
        for each in slices:
            found.put(each)
        return found

    def put(self, each: Slice) -> None:
        """A slice is new, or another one than before; other drivers' are left out."""
        spec = each["spec"]
        if spec["driver"] != DRIVER:
            return
        pool, name = spec["pool"]["name"], each["metadata"]["name"]
        known = self._slices[pool].get(name)
        self._slices[pool][name] = each
        if known is None or known["spec"] != spec:
            self._unsettled[pool] = each

    def remove(self, each: Slice) -> None:
        spec = each["spec"]
        if spec["driver"] == DRIVER:
            pool = spec["pool"]["name"]
            self._slices[pool].pop(each["metadata"]["name"], None)
            self._unsettled[pool] = each

    def set_rule(self, name: str, rule: TaintRule | None) -> None:
        """The DeviceTaintRule of that name is new, or another one than before; None for one that is
        gone, or that selects no device of this driver."""
        old = self._rules.pop(name, None)
        if rule is not None:
            self._rules[name] = rule
        if rule != old:
            changed = [each for each in (old, rule) if each is not None]
            for pool, slices in self._slices.items():
                if slices and any(each.selects_pool(pool) for each in changed):
                    self._unsettled.setdefault(pool, next(iter(slices.values())))

    def devices_of(self, node: str) -> tuple[Device, ...]:
        """In the order of pools, slices and lists."""
        self.refresh()
        pools = self._by_node.get(node, {})
        if len(pools) == 1:
            return next(iter(pools.values())).devices
        return tuple(device for name in sorted(pools) for device in pools[name].devices)

    def node_of(self, pool: str) -> str | None:
        """The node that the pool belongs to; None where no such pool is published."""
        self.refresh()
        found = self._pools.get(pool)
        return None if found is None else found.node

    @property
    def problems(self) -> Mapping[str, str]:
        """Pools that cannot be used, and why, in words."""
        self.refresh()
        return self._problems

    def problem_on(self, node: str) -> str:
        """Why not all devices of the node are known; empty where they are."""
        self.refresh()
        pools = self._by_node.get(node, {}).values()
        return next((pool.problem for pool in pools if pool.problem), "")

    def refresh(self) -> None:
        """Read the pools again whose slices, or DeviceTaintRules, have changed."""
        while self._unsettled:
            name, changed = self._unsettled.popitem()
            self._forget(name)
            slices = list(self._slices[name].values())
            if not slices:
                del self._slices[name]
                continue
            pool = Pool.unreadable(name, slices)
            with self._isolate(changed):
                rules = [self._rules[each] for each in sorted(self._rules)]
                selecting = [rule for rule in rules if rule.selects_pool(name)]
                pool = Pool.build(name, slices, selecting)
            self._pools[name] = self._by_node[pool.node][name] = pool
            if pool.problem:
                self._problems[name] = pool.problem
            self._tell(pool.node)

    def watch(self) -> set[str]:
        """From now on, the names of nodes whose devices change are put into the set."""
        self._watchers.append(set())
        return self._watchers[-1]

    def _tell(self, node: str) -> None:
        for changed in self._watchers:
            changed.add(node)

    def _forget(self, name: str) -> None:
        old = self._pools.pop(name, None)
        self._problems.pop(name, None)
        if old is None:
            return
        self._tell(old.node)
        del self._by_node[old.node][name]
        if not self._by_node[old.node]:
            del self._by_node[old.node]


def _newest(name: str, slices: Sequence[Slice]) -> list[Slice]:
    newest = max(each["spec"]["pool"]["generation"] for each in slices)
    current = [each for each in slices if each["spec"]["pool"]["generation"] == newest]
    current.sort(key=lambda each: str(each["metadata"]["name"]))
    wanted = current[0]["spec"]["pool"]["resourceSliceCount"]
    if len(current) != wanted:
        raise InvalidValue(
            f"pool {name} is incomplete: {len(current)} of {wanted} slices of generation {newest}"
        )
    return current


def _node_of(name: str, slices: Sequence[Slice]) -> str:
    """A slice that is hidden from kube-scheduler names no node: the pool's name does."""
    named = (each["spec"].get("nodeName") for each in slices)
    return next(filter(None, named), None) or name.removeprefix(_PREFIX)


def _check_node(name: str, node: str, slices: Iterable[Slice]) -> None:
    for each in slices:
        spec = each["spec"]
        if spec.get("allNodes") or spec.get("perDeviceNodeSelection"):
            raise InvalidValue(
                f"pool {name} has devices of several nodes, which only kube-scheduler allocates"
            )
        if spec.get("nodeName", node) != node:
            raise InvalidValue(f"pool {name} is invalid: it has slices of several nodes")


def _devices(pool: str, slices: Sequence[Slice], rules: Sequence[TaintRule]) -> Iterator[Device]:
    listed = [entry for each in slices for entry in each["spec"].get("devices") or ()]
    names = Counter(entry["name"] for entry in listed)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise InvalidValue(f"pool {pool} is invalid: it lists device {min(twice)} twice")
    for entry in listed:
        yield Device.parse(pool, entry, [rule for rule in rules if rule.selects(entry["name"])])
