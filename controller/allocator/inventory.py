"""What is published: the devices of complete pools, by node, updated slice by slice (upstream:
GatherPools and buildPool, 1.36.3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from controller.allocator.device import Device, DeviceId
from controller.allocator.taints import TaintRule
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.hidden_device import reveal_taints
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER

Slice = Mapping[str, Any]
Isolate = Callable[[Slice], AbstractContextManager[object]]
_PREFIX: Final = f"{DRIVER}/"  # of a pool's name; the node's name follows


@dataclass(frozen=True, slots=True)
class Pool:
    """The devices of the newest generation, all of one `node`, in upstream's order: slices by name,
    then as they are listed. Those of a pool with a `problem`, in words, are given to nobody, and a
    request for all devices waits for it; there may be others that are not known."""

    node: str
    devices: tuple[Device, ...] = ()
    problem: str = ""


class Inventory:
    """Devices of this driver. Whatever is read includes what was put or removed before. If a pool
    cannot be read, `isolate` ends the attempt, and the pool has a problem. `for_scheduler`: those
    with counters are to be had, which kube-scheduler allocates, and not those without."""

    def __init__(self, isolate: Isolate = nullcontext, *, for_scheduler: bool = False) -> None:
        self.for_scheduler = for_scheduler
        self._isolate = isolate
        self._watchers: list[set[str]] = []
        self._slices: defaultdict[str, dict[str, Slice]] = defaultdict(dict)
        self._rules: dict[str, TaintRule] = {}
        self._withheld: dict[str, str] = {}  # by pool, why
        self._changed: dict[str, Slice] = {}  # by pool, one of its slices
        self._pools: dict[str, Pool] = {}
        self._problems: dict[str, str] = {}  # by node
        self._by_node: defaultdict[str, set[str]] = defaultdict(set)

    @classmethod
    def of(
        cls,
        slices: Iterable[Slice],
        rules: Iterable[Object] = (),
        *,
        for_scheduler: bool = False,
    ) -> Inventory:
        """Of these slices and DeviceTaintRules."""
        found = cls(for_scheduler=for_scheduler)
        for each in slices:
            found.put(each)
        for rule in rules:
            found.set_rule(rule["metadata"]["name"], TaintRule.parse(rule))
        return found

    def put(self, each: Slice) -> None:
        """A slice is new or has changed; those of other drivers are ignored."""
        spec = each["spec"]
        if spec["driver"] == DRIVER:
            pool, name = spec["pool"]["name"], each["metadata"]["name"]
            known = self._slices[pool].get(name)
            self._slices[pool][name] = each
            if known is None or known["spec"] != spec:
                self._changed[pool] = each

    def remove(self, each: Slice) -> None:
        """A slice is deleted."""
        spec = each["spec"]
        if spec["driver"] == DRIVER:
            pool = spec["pool"]["name"]
            self._slices[pool].pop(each["metadata"]["name"], None)
            self._changed[pool] = each

    def withhold(self, pool: str, problem: str) -> None:
        """The pool has the `problem` from now on; empty for none."""
        if problem != self._withheld.pop(pool, ""):
            self._changed.update((pool, each) for each in self._slices.get(pool, {}).values())
        if problem:
            self._withheld[pool] = problem

    def set_rule(self, name: str, rule: TaintRule | None) -> None:
        """The DeviceTaintRule of that name is new or has changed; None if it is deleted, or selects
        no device of this driver."""
        old = self._rules.pop(name, None)
        if rule is not None:
            self._rules[name] = rule
        if rule != old:
            for pool, slices in self._slices.items():
                if slices and any(each.selects(pool) for each in (old, rule) if each is not None):
                    self._changed.setdefault(pool, next(iter(slices.values())))

    def devices_of(self, node: str) -> tuple[Device, ...]:
        """Those of pools without a problem, in the order of pools, slices and lists."""
        self.refresh()
        pools = [pool for pool in self._pools_of(node) if not pool.problem]
        return (
            pools[0].devices
            if len(pools) == 1
            else tuple(device for pool in pools for device in pool.devices)
        )

    def device(self, wanted: DeviceId) -> Device | None:
        """The published device; None if there is none, or its pool has a problem."""
        self.refresh()
        pool = self._pools.get(wanted.pool)
        devices = () if pool is None or pool.problem else pool.devices
        return next((device for device in devices if device.id == wanted), None)

    def node_of(self, pool: str) -> str | None:
        """The node that the pool belongs to; None if no such pool is published."""
        self.refresh()
        found = self._pools.get(pool)
        return None if found is None else found.node

    @property
    def pools(self) -> Mapping[str, Pool]:
        """By name, with those that have a problem."""
        self.refresh()
        return self._pools

    @property
    def problems(self) -> Mapping[str, str]:
        """By node, why there may be devices that are not known, in words. All devices of other
        nodes are known."""
        self.refresh()
        return self._problems

    def watch(self) -> set[str]:
        """From now on, the names of nodes whose devices change are put into the set."""
        self._watchers.append(set())
        return self._watchers[-1]

    def refresh(self) -> None:
        """Read the pools again whose slices, or DeviceTaintRules, have changed."""
        while self._changed:
            name, changed = self._changed.popitem()
            slices = list(self._slices[name].values())
            if not slices:
                del self._slices[name]
            self._set_pool(name, self._read(name, slices, changed) if slices else None)

    def _read(self, name: str, slices: Sequence[Slice], changed: Slice) -> Pool:
        node = _node_of(name, slices)
        pool = Pool(node, problem=f"pool {name} cannot be read: see the controller's log")
        with self._isolate(changed):
            pool = _read(name, node, slices, self._rules)
        withheld = self._withheld.get(name)
        return replace(pool, problem=withheld) if withheld else pool

    def _set_pool(self, name: str, pool: Pool | None) -> None:
        """The pool is that now; None if it has no slices any more."""
        old = self._pools.pop(name, None)
        if old is not None:
            self._by_node[old.node].remove(name)
        if pool is not None:
            self._pools[name] = pool
            self._by_node[pool.node].add(name)
        for node in {each.node for each in (old, pool) if each is not None}:
            problems = [each.problem for each in self._pools_of(node) if each.problem]
            self._problems.pop(node, None)
            if problems:
                self._problems[node] = "; ".join(problems)
            if not self._by_node[node]:
                del self._by_node[node]
            for watcher in self._watchers:
                watcher.add(node)

    def _pools_of(self, node: str) -> list[Pool]:
        return [self._pools[name] for name in sorted(self._by_node.get(node, ()))]


def _read(name: str, node: str, slices: Sequence[Slice], rules: Mapping[str, TaintRule]) -> Pool:
    """From all known slices of the pool, at least one."""
    selecting = [rules[each] for each in sorted(rules) if rules[each].selects(name)]
    newest = max(each["spec"]["pool"]["generation"] for each in slices)
    current = [each for each in slices if each["spec"]["pool"]["generation"] == newest]
    current.sort(key=lambda each: str(each["metadata"]["name"]))
    problem = _problem(name, node, current)
    try:
        return Pool(node, _devices(name, current, selecting), problem)
    except InvalidValue as error:
        return Pool(node, problem=problem or str(error))


def _node_of(name: str, slices: Sequence[Slice]) -> str:
    """A slice that is hidden from kube-scheduler names no node: the pool's name does."""
    named = (each["spec"].get("nodeName") for each in slices)
    return next(filter(None, named), None) or name.removeprefix(_PREFIX)


def _problem(name: str, node: str, slices: Sequence[Slice]) -> str:
    """Why the devices of these slices, which are all of the newest generation, are not given."""
    pool = slices[0]["spec"]["pool"]
    wanted, newest = pool["resourceSliceCount"], pool["generation"]
    if len(slices) != wanted:
        return f"pool {name} is incomplete: {len(slices)} of {wanted} slices of generation {newest}"
    for spec in (each["spec"] for each in slices):
        if spec.get("allNodes") or spec.get("perDeviceNodeSelection"):
            return f"pool {name} has devices of several nodes, which only kube-scheduler allocates"
        if spec.get("nodeName", node) != node:
            return f"pool {name} is invalid: it has slices of several nodes"
    return ""


def _devices(pool: str, slices: Sequence[Slice], rules: Sequence[TaintRule]) -> tuple[Device, ...]:
    listed = [entry for each in slices for entry in _entries(each["spec"])]
    twice = [name for name, count in Counter(e["name"] for e in listed).items() if count > 1]
    if twice:
        raise InvalidValue(f"pool {pool} is invalid: it lists device {min(twice)} twice")
    devices = []
    for entry in listed:
        taints = [rule.taint for rule in rules if rule.selects(pool, entry["name"])]
        devices.append(Device.parse(pool, entry, taints))
    return tuple(devices)


def _entries(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """A hidden slice has attributes in place of taints."""
    devices = spec.get("devices") or ()
    return devices if spec.get("nodeName") else map(reveal_taints, devices)
