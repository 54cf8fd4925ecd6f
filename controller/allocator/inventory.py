"""What is published: the devices of complete pools, by node, kept up to date slice by slice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from controller.allocator.device import Device, DeviceId
from controller.allocator.pool import Pool, Slice
from controller.allocator.taint_rules import TaintRule
from dra_driver.model.names import DRIVER

_NONE: tuple[Device, ...] = ()
Isolate = Callable[[Slice], AbstractContextManager[None]]


def _not_isolated(_: Slice) -> AbstractContextManager[None]:
    return nullcontext()


class Inventory:
    """Devices of this driver. Reading settles what was put or removed before. A pool that cannot
    be read, `isolate` having ended the attempt, is one with a problem.

    Most devices belong to one node. *Roaming* ones, published for all nodes or by a selector,
    stand apart: on which nodes they can be used depends on the nodes' labels.
    """

    def __init__(self, isolate: Isolate = _not_isolated) -> None:
        self._isolate = isolate
        self._slices: defaultdict[str, dict[str, Slice]] = defaultdict(dict)
        self._rules: dict[str, TaintRule] = {}
        self._unsettled: dict[str, Slice] = {}
        self._pools: dict[str, Pool] = {}
        self._by_id: dict[DeviceId, Device] = {}
        self._pools_of_node: defaultdict[str, set[str]] = defaultdict(set)
        self._by_node: dict[str, tuple[Device, ...]] = {}
        self._roaming: dict[str, tuple[Device, ...]] = {}
        self._counting: set[str] = set()
        self._problems: dict[str, str] = {}
        self._watchers: list[set[str]] = []

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

    def watch(self, changed: set[str]) -> None:
        """From now on, put the names of nodes whose devices change into `changed`; the empty
        name stands for all nodes."""
        self._watchers.append(changed)

    def devices_of(self, name: str, node: Mapping[str, Any] | None = None) -> tuple[Device, ...]:
        """What can be used on the node `name`, in the order of pools, slices and lists. Roaming
        devices are told by `node`, its object."""
        self.settle()
        local = self._by_node.get(name, _NONE)
        if not self._roaming:
            return local
        found = [
            device
            for devices in self._roaming.values()
            for device in devices
            if device.scope.includes(name, node)
        ]
        return tuple(sorted((*local, *found), key=lambda each: each.id.pool)) if found else local

    @property
    def by_id(self) -> Mapping[DeviceId, Device]:
        self.settle()
        return self._by_id

    @property
    def nodes(self) -> Mapping[str, tuple[Device, ...]]:
        """Nodes with devices of their own, and these."""
        self.settle()
        return self._by_node

    @property
    def roams(self) -> bool:
        """Whether any device belongs to more than one node."""
        self.settle()
        return bool(self._roaming)

    @property
    def counts(self) -> bool:
        """Whether any pool has counters."""
        self.settle()
        return bool(self._counting)

    @property
    def problems(self) -> Mapping[str, str]:
        """Pools that cannot be used, and why."""
        self.settle()
        return self._problems

    def pool(self, name: str) -> Pool | None:
        self.settle()
        return self._pools.get(name)

    def nodes_of(self, pool: str) -> Iterable[str]:
        """Nodes that a change in the pool concerns; the empty name stands for all."""
        found = self.pool(pool)
        if found is None or found.scopes is None:
            return ("",)
        return found.scopes

    def problem_on(self, node: str) -> str:
        """Why what the node has is not told in full; empty where it is."""
        for pool, problem in self.problems.items():
            scopes = self._pools[pool].scopes
            if scopes is None or node in scopes:
                return problem
        return ""

    def settle(self) -> None:
        """Read the pools anew whose slices, or DeviceTaintRules, changed."""
        while self._unsettled:
            name, changed = self._unsettled.popitem()
            old = self._pools.pop(name, None)
            if old is not None:
                self._forget(old)
            slices = self._slices[name]
            if not slices:
                del self._slices[name]
                continue
            pool = Pool.unreadable(name, list(slices.values()))
            with self._isolate(changed):
                rules = [self._rules[each] for each in sorted(self._rules)]
                selecting = [rule for rule in rules if rule.selects_pool(name)]
                pool = Pool.build(name, list(slices.values()), selecting)
            self._learn(pool)

    def _learn(self, pool: Pool) -> None:
        self._pools[pool.name] = pool
        self._by_id.update((device.id, device) for device in pool.devices)
        if pool.problem:
            self._problems[pool.name] = pool.problem
        if pool.counters:
            self._counting.add(pool.name)
        roaming = tuple(device for device in pool.devices if not device.scope.node)
        if roaming:
            self._roaming[pool.name] = roaming
        for node in _local_nodes(pool):
            self._pools_of_node[node].add(pool.name)
            self._gather(node)
        self._tell(pool)

    def _forget(self, pool: Pool) -> None:
        for device in pool.devices:
            del self._by_id[device.id]
        self._problems.pop(pool.name, None)
        self._counting.discard(pool.name)
        self._roaming.pop(pool.name, None)
        for node in _local_nodes(pool):
            self._pools_of_node[node].discard(pool.name)
            self._gather(node)
        self._tell(pool)

    def _gather(self, node: str) -> None:
        devices = tuple(
            device
            for pool in sorted(self._pools_of_node[node])
            for device in self._pools[pool].devices
            if device.scope.node == node
        )
        if devices:
            self._by_node[node] = devices
        else:
            self._by_node.pop(node, None)
            del self._pools_of_node[node]

    def _tell(self, pool: Pool) -> None:
        names = pool.scopes if pool.scopes is not None else ("",)
        for changed in self._watchers:
            changed.update(names)


def _local_nodes(pool: Pool) -> Iterator[str]:
    return iter({device.scope.node for device in pool.devices if device.scope.node})
