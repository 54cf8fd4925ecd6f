"""What other drivers publish, by node.

A node's devices are read when they are asked for: nearly all of them never are. What is not read as
kube-scheduler reads it counts as unknown, and no pod waits because of it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from controller.allocator.device import Device
from controller.allocator.device_request import DeviceRequest
from controller.allocator.taints import TaintRule
from dra_driver.model.claims.claim import Object, ReadOnlyObject
from dra_driver.model.errors import InvalidValue
from dra_driver.selector.selector import Selectors

PoolId = tuple[str, str]
"""A driver, and the name of its pool."""

Isolate = Callable[[ReadOnlyObject], AbstractContextManager[object]]

_MOST_READ: Final = 512  # drivers on a node whose devices stay read: some 20 KiB for eight devices
_MOST_REQUESTS: Final = 64  # whose devices are remembered for each
_SEVERAL_NODES: Final = ""  # in place of a node's name
_READ: Final = frozenset(
    {
        "name",
        "attributes",
        "capacity",
        "taints",
        "allowMultipleAllocations",
        "bindsToNode",
        "bindingConditions",
        "bindingFailureConditions",
        "nodeAllocatableResources",  # kube-scheduler reads it for cpu and memory of the node
    }
)
"""Fields of a device (resource.k8s.io/v1 of Kubernetes 1.37.2). Counters are left out: what a
device leaves of them to others is not counted here."""


class DevicesUnknown(Exception):
    """Which devices of other drivers serve a request on a node is not known."""


@dataclass(slots=True)
class _Pool:
    """Its slices by name, and how many there are for each node."""

    slices: dict[str, ReadOnlyObject] = field(default_factory=dict)
    nodes: Counter[str] = field(default_factory=Counter)

    def replace(self, name: str, new: ReadOnlyObject | None) -> ReadOnlyObject | None:
        """Returns the slice that had that name."""
        old = self.slices.pop(name, None)
        if old is not None:
            self.nodes[_node_of(old)] -= 1
        if new is not None:
            self.slices[name] = new
            self.nodes[_node_of(new)] += 1
        self.nodes = +self.nodes
        return old

    def newest(self) -> list[ReadOnlyObject]:
        """The slices of the newest generation, by name."""
        newest = max(each["spec"]["pool"]["generation"] for each in self.slices.values())
        by_name = [each for _, each in sorted(self.slices.items())]
        return [each for each in by_name if each["spec"]["pool"]["generation"] == newest]

    def is_complete(self) -> bool:
        """Whether all its slices are there, and are of one node."""
        newest = self.newest()
        wanted = newest[0]["spec"]["pool"]["resourceSliceCount"]
        return len(newest) == wanted and len(self.nodes) == 1


_Selected = tuple[tuple[Device, ...], tuple[Device, ...]]
"""Those that kube-scheduler takes first, and those of pools with binding conditions, which it takes
last (sortPoolsByID, 1.37.2); each in the order of pools, slices and lists."""


@dataclass(slots=True, eq=False)
class _Devices:
    """Of one driver on a node. Whether one of the `doubtful` ones can be had is not known. If they
    are not `complete`, there are more, or others. `selected` has those that requests select; None
    if one of them is doubtful."""

    devices: _Selected
    doubtful: tuple[Device, ...]
    complete: bool
    selected: dict[DeviceRequest, _Selected | None] = field(default_factory=dict)

    def select(self, device_request: DeviceRequest, selectors: Selectors) -> _Selected:
        """Raises DevicesUnknown and AllowanceSpent."""
        if device_request not in self.selected:
            if len(self.selected) >= _MOST_REQUESTS:
                self.selected.clear()
            self.selected[device_request] = self._select(device_request, selectors)
        found = self.selected[device_request]
        if found is None or not self.complete:
            raise DevicesUnknown
        return found

    def _select(self, device_request: DeviceRequest, selectors: Selectors) -> _Selected | None:
        first, last = self.devices
        try:
            first, last, doubtful = (
                tuple([each for each in devices if _selects(device_request, each, selectors)])
                for devices in (first, last, self.doubtful)
            )
        except InvalidValue:  # kube-scheduler ends the pod's attempt
            return None
        return None if doubtful else (first, last)


class OtherInventory:
    """Slices of other drivers and DeviceTaintRules. It has them once `is_listed` is set: before, as
    long as no pod asks for such devices, nothing is known. If a pool cannot be read, `isolate` ends
    the attempt."""

    def __init__(self, isolate: Isolate = nullcontext) -> None:
        self.is_listed = False
        self._isolate = isolate
        self._pools: defaultdict[PoolId, _Pool] = defaultdict(_Pool)
        self._by_node: defaultdict[str, set[PoolId]] = defaultdict(set)
        self._rules: dict[str, Object] = {}
        self._read: OrderedDict[tuple[str, str], _Devices] = OrderedDict()  # by node and driver
        self._watchers: list[set[str]] = []

    def put(self, each: ReadOnlyObject) -> None:
        """A slice is new or has changed."""
        self._replace(each, each)

    def remove(self, each: ReadOnlyObject) -> None:
        """A slice is deleted."""
        self._replace(each, None)

    def set_rule(self, name: str, rule: Object | None) -> None:
        """The DeviceTaintRule of that name is new or has changed; None if it is deleted."""
        old = self._rules.pop(name, None)
        if rule is not None:
            self._rules[name] = rule
        if old is None or rule is None or old["spec"] != rule["spec"]:
            self._read.clear()
            self._tell(self._by_node)

    def watch(self) -> set[str]:
        """From now on, the names of nodes whose devices change are put into the set."""
        self._watchers.append(set())
        return self._watchers[-1]

    def nodes_of(self, pool: PoolId) -> list[str]:
        """The nodes with slices of the pool; those that several nodes reach are left out."""
        found = self._pools.get(pool)
        return [] if found is None else [node for node in found.nodes if node != _SEVERAL_NODES]

    def select(
        self, node: str, device_request: DeviceRequest, selectors: Selectors
    ) -> list[Device]:
        """The devices of the node that are large enough for the request, whatever is allocated of
        them, in the order in which kube-scheduler takes them. Raises DevicesUnknown and
        AllowanceSpent."""
        first, last = list[Device](), list[Device]()
        for place in (_SEVERAL_NODES, node):
            for driver in sorted({driver for driver, _ in self._by_node.get(place, ())}):
                if not selectors.excludes(device_request.selectors, driver):
                    of_driver = self._devices(place, driver).select(device_request, selectors)
                    first += of_driver[0]
                    last += of_driver[1]
        return [*first, *last]

    def _replace(self, each: ReadOnlyObject, new: ReadOnlyObject | None) -> None:
        pool_id = each["spec"]["driver"], each["spec"]["pool"]["name"]
        pool = self._pools[pool_id]
        old = pool.replace(each["metadata"]["name"], new)
        changed = {_node_of(known) for known in (old, new) if known is not None}
        for node in changed & pool.nodes.keys():
            self._by_node[node].add(pool_id)
        for node in changed - pool.nodes.keys():
            self._by_node[node].discard(pool_id)
            if not self._by_node[node]:
                del self._by_node[node]
        if not pool.slices:
            del self._pools[pool_id]
        if old is None or new is None or old["spec"] != new["spec"]:
            # The only node of a pool may have been one of several before.
            only = pool.nodes.keys() if len(pool.nodes) == 1 else set[str]()
            for node in changed | only:
                self._read.pop((node, pool_id[0]), None)
            self._tell(changed | only)

    def _tell(self, nodes: Iterable[str]) -> None:
        """Devices have changed there."""
        names = set(nodes)
        if _SEVERAL_NODES in names:
            names = self._by_node.keys() - {_SEVERAL_NODES}
        for watcher in self._watchers:
            watcher.update(names)

    def _devices(self, node: str, driver: str) -> _Devices:
        key = node, driver
        found = self._read.pop(key, None) or self._read_devices(node, driver)
        self._read[key] = found
        while len(self._read) > _MOST_READ:
            self._read.popitem(last=False)
        return found

    def _read_devices(self, node: str, driver: str) -> _Devices:
        first, last, doubtful = list[Device](), list[Device](), list[Device]()
        complete = True
        for pool_id in sorted(self._by_node[node]):
            if pool_id[0] != driver:
                continue
            pool, devices = self._pools[pool_id], None
            slices = pool.newest()
            with self._isolate(slices[0]), suppress(InvalidValue):
                entries = [each for part in slices for each in part["spec"].get("devices") or ()]
                devices = self._parsed(pool_id, entries)
            if devices is None or (node != _SEVERAL_NODES and not pool.is_complete()):
                complete = False
            elif node == _SEVERAL_NODES or not _are_understood(entries):
                doubtful += devices
            elif any(device.kind.conditions for device in devices):
                last += devices
            else:
                first += devices
        return _Devices((tuple(first), tuple(last)), tuple(doubtful), complete)

    def _parsed(self, pool_id: PoolId, entries: Iterable[Mapping[str, Any]]) -> list[Device]:
        """Raises InvalidValue."""
        driver, pool = pool_id
        rules = self._rules_for(driver, pool)
        return [
            Device.parse_other(
                driver,
                pool,
                entry,
                [rule.taint for rule in rules if rule.selects(pool, entry["name"])],
            )
            for entry in entries
        ]

    def _rules_for(self, driver: str, pool: str) -> list[TaintRule]:
        rules = [TaintRule.parse(self._rules[name], driver) for name in sorted(self._rules)]
        return [rule for rule in rules if rule is not None and rule.selects(pool)]


def _selects(device_request: DeviceRequest, device: Device, selectors: Selectors) -> bool:
    """Raises InvalidValue and AllowanceSpent."""
    values = device.selector_input
    if not all(selectors.matches(text, values) for text in device_request.selectors):
        return False
    if _differ_in_domain(device_request.capacity.keys(), device):
        raise InvalidValue(
            "kube-scheduler 1.38 takes the two names for one, and earlier ones do not"
        )
    return device_request.capacity_fit(device.kind) is not None


def _differ_in_domain(asked: AbstractSet[str], device: Device) -> bool:
    """Whether the device has a capacity that is asked for by its full name, or the reverse."""
    has, domain = device.kind.capacity.keys(), f"{device.driver}/"
    return any(f"{domain}{name}" in has or name.removeprefix(domain) in has for name in asked - has)


def _are_understood(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all that kube-scheduler reads of the devices is read here, too."""
    is_unique = len({entry["name"] for entry in entries}) == len(entries)
    return is_unique and not any(entry.keys() - _READ for entry in entries)


def _node_of(each: ReadOnlyObject) -> str:
    return each["spec"].get("nodeName") or _SEVERAL_NODES
