"""The inventory that `inspect` prints, kept up to date: a node that changes is read again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add, or_
from typing import Any

from controller.allocator.inventory import Inventory
from controller.allocator.taints import TaintRule
from controller.cache import pods
from dra_driver.model.claims.claim import Object, reserved_for
from dra_driver.model.errors import InvalidValue
from kubectl_gcu.inventory.by_claims import node_of_pool, pools_of
from kubectl_gcu.inventory.by_limits import node_by_limits
from kubectl_gcu.inventory.nodes import in_order, is_cordoned
from kubectl_gcu.inventory.views import LargestRequests, NodeView, Totals
from kubectl_gcu.output import node_data, summary_data

_NOTHING = Totals.of(())


@dataclass(frozen=True, slots=True, eq=False)
class NodeEntry:
    """A node with what is computed of it. There is another object after each change, and only
    then."""

    view: NodeView
    totals: Totals
    largest: LargestRequests
    data: dict[str, Any]
    """As `inspect -o json` has it."""

    @classmethod
    def of(cls, view: NodeView) -> NodeEntry:
        totals = Totals.of(view.cards)
        return cls(view, totals, LargestRequests.of(view), node_data(view, totals))


class LiveInventory:
    """Takes in objects before and after a change. One thread at a time uses it."""

    def __init__(self) -> None:
        self._inventory = Inventory()
        self._claims: defaultdict[str, dict[str, Object]] = defaultdict(dict)  # by pool and UID
        # By the UIDs of pods and of their claims.
        self._used: defaultdict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        self._pods: dict[str, Object] = {}
        self._nodes: dict[str, Object] = {}
        self._unreadable: dict[str, str] = {}
        self._entries: dict[tuple[str, str], NodeEntry] = {}  # by the kind of source and its name
        self._changed_pools: set[str] = set()
        self._changed_nodes: set[str] = set()
        self._sees_slices = True

    def on_slice(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._inventory.remove(old)
        if new is not None:
            self._inventory.put(new)
        found = (each["spec"]["pool"]["name"] for each in (old, new) if each is not None)
        self._changed_pools.update(found)

    def on_rule(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._inventory.set_rule(old["metadata"]["name"], None)
        if new is not None:
            self._inventory.set_rule(new["metadata"]["name"], TaintRule.parse(new))
        self._changed_pools.update(self._inventory.pools)

    def on_claim(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._set_claim(old, None)
        if new is not None:
            self._set_claim(new, new)

    def _set_claim(self, claim: Object, present: Object | None) -> None:
        uid, pools = claim["metadata"]["uid"], pools_of(claim)
        self._changed_pools.update(pools)
        for pool in pools:
            _put(self._claims, pool, uid, present)
        for user in reserved_for(claim):
            _put(self._used, user["uid"], uid, None if present is None else pools)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        uid = pod["metadata"]["uid"]
        if new is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = new
        self._changed_pools.update(chain.from_iterable(self._used.get(uid, {}).values()))
        self._changed_nodes.update(filter(None, [pods.node_name(pod)]))

    def on_node(self, old: Object | None, new: Object | None) -> None:
        node = new or old
        assert node is not None
        name = node["metadata"]["name"]
        if new is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = new
        self._changed_nodes.add(name)

    def see_slices(self, *, may: bool) -> None:
        """Whether the user may read slices: if not, held cards are all that is known."""
        if may is not self._sees_slices:
            self._sees_slices = may
            self._changed_pools.update(self._claims)

    def entries(self) -> list[NodeEntry]:
        """All nodes with GCUs, in the order of `inspect`."""
        cordons = set(self._changed_nodes)
        for pool in self._changed_pools:
            self._read_pool(pool)
        for name in self._changed_nodes:
            self._read_node(name)
        self._changed_pools, self._changed_nodes = set(), set()
        for key, entry in self._entries.items():
            if entry.view.name in cordons:
                self._set(key, entry.view)
        by_view = {id(each.view): each for each in self._entries.values()}
        return [by_view[id(view)] for view in in_order(each.view for each in by_view.values())]

    def unreadable(self) -> list[str]:
        """A sentence for each node whose annotation cannot be read."""
        return [self._unreadable[name] for name in sorted(self._unreadable)]

    def _read_pool(self, pool: str) -> None:
        claims = self._claims.get(pool) or {}
        view = node_of_pool(
            self._inventory, pool, claims.values(), self._pods, sees_slices=self._sees_slices
        )
        self._set(("pool", pool), view if view.cards else None)

    def _read_node(self, name: str) -> None:
        self._unreadable.pop(name, None)
        view = None
        if name in self._nodes:
            try:
                view = node_by_limits(self._nodes[name], self._pods)
            except InvalidValue as error:
                self._unreadable[name] = str(error)
        self._set(("node", name), view)

    def _set(self, key: tuple[str, str], view: NodeView | None) -> None:
        if view is None:
            self._entries.pop(key, None)
            return
        view = replace(view, unschedulable=is_cordoned(self._nodes.get(view.name, {})))
        known = self._entries.get(key)
        if known is None or known.view != view:
            self._entries[key] = NodeEntry.of(view)


def _put(by_two: defaultdict[str, dict[str, Any]], one: str, other: str, value: Any) -> None:
    if value is not None:
        by_two[one][other] = value
        return
    by_two[one].pop(other, None)
    if not by_two[one]:
        del by_two[one]


def summary(entries: Collection[NodeEntry], missing: Iterable[str]) -> dict[str, Any]:
    """What `inspect -o json` has beside ``nodes``."""
    totals = reduce(add, (each.totals for each in entries), _NOTHING)
    largest = reduce(or_, (each.largest for each in entries), LargestRequests())
    return summary_data(totals, largest, list(chain(missing)))
