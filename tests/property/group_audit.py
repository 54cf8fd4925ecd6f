"""What must hold of groups whatever happens, read from the history of a played API server."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import DRIVER, SCHEDULING_GATE
from tests.fake_api.store import Entry, Store

_SOON: Final = 20.0
"""Seconds in which the controller does what it can, if no write fails: less than the patience after
which it looks again at all that waits."""

_FOLLOWED: Final = _SOON + 30.0
"""The same where names were written again, which kube-scheduler has half a minute to follow."""

_Device = tuple[str, str]  # pool, name


class Seen:
    """The pods by their names, in the order in which they came, and who has which device. Members
    of groups are by the group's name, pods alone in that of the empty name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = store.version
        self.pods: dict[str, Object] = {}
        self.members: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self.holders: dict[_Device, str] = {}

    def new(self) -> list[Entry]:
        """What has happened since the last call, to be taken in one by one."""
        entries = self._store.after(self._version)
        self._version = self._store.version
        return entries

    def take_in(self, entry: Entry) -> None:
        if entry.key.resource is PODS:
            name, of = entry.key.name, group_of(entry.new or entry.old or {})
            if entry.new is None:
                del self.pods[name], self.members[of][name]
            else:
                self.pods[name] = self.members[of][name] = entry.new
        elif entry.key.resource is RESOURCE_CLAIMS:
            for device in _devices(entry.old):
                del self.holders[device]
            for device in _devices(entry.new):
                assert device not in self.holders, f"{device} is allocated twice"
                self.holders[device] = entry.key.name

    def free(self, node: str, cards: int) -> list[str]:
        """The names of the node's devices that no claim has."""
        devices = [f"whole-0000-{bus:02x}-00-0" for bus in range(cards)]
        return [each for each in devices if (f"{DRIVER}/{node}", each) not in self.holders]

    def tried_with(self, pod: Object) -> Iterable[Object]:
        """The pods that kube-scheduler tries with this one, which is among them."""
        of = group_of(pod)
        return self.members[of].values() if of else [pod]

    def parts(self, of: str) -> tuple[list[Object], int]:
        """The members of the group that wait, and how many are bound."""
        members = self.members[of].values()
        waiting = [each for each in members if not is_bound(each)]
        return waiting, len(members) - len(waiting)


class Audit:
    """`cards` are by node. Whoever writes a history sets three fields: `quorum`, how many pods each
    group needs; `ended`, the groups that have lost a pod; `calm_from`, the time by which every
    failed write has been repeated."""

    def __init__(self, store: Store, cards: Mapping[str, int]) -> None:
        self.seen = Seen(store)
        self._cards = cards
        self.quorum: dict[str, int] = {}
        self.ended: set[str] = set()
        self.calm_from = 0.0
        self._passed_over: set[str] = set()  # pods whose card kube-scheduler gave to another one
        self._namings = Counter[str]()  # by group
        self._lost: set[str] = set()  # groups with a waiting pod that was deleted
        self._since: dict[str, float] = {}  # what must not be so for long

    def catch_up(self) -> bool:
        """Read what has happened; whether that is anything. Fails where it was not right at any
        moment."""
        entries = self.seen.new()
        for entry in entries:
            self.seen.take_in(entry)
            if entry.key.resource is PODS and entry.old:
                if entry.new:
                    self._on_pod(entry.old, entry.new)
                elif not is_bound(entry.old):
                    self._lost.add(group_of(entry.old))
        return bool(entries)

    def _on_pod(self, old: Object, new: Object) -> None:
        if is_bound(new):
            if not is_bound(old):
                self._pass_over(old, new["spec"]["nodeName"])
            return
        if node_of(new) != node_of(old):
            self._namings[group_of(new)] += 1
        if is_gated(old) and not is_gated(new):
            for node in self._cards:
                self._check_promised(node)
            if group_of(new):
                self._check_lifted(group_of(new))

    def check(self, now: float) -> None:
        """The controller is idle at that time, in seconds."""
        if self.catch_up():
            for of in self.quorum:
                self._check_group(of)
        wrong = {**self._held_back(), **self._unused()}
        self._since = {each: self._since.get(each, now) for each in wrong}
        for each, since in self._since.items():
            assert now - max(since, self.calm_from) <= wrong[each], each

    def _check_promised(self, node: str) -> None:
        """kube-scheduler finds a card on the node for each pod that is named for it."""
        promised, free = self._promised(node)
        assert len(promised) <= free, f"{promised} are named for {free} cards of {node}"

    def _pass_over(self, pod: Object, node: str) -> None:
        """kube-scheduler has bound a pod to the node. Where another one was named for that pod, or
        none that still counts, it has what others were named for: who of them gets nothing is not
        known."""
        is_over = is_judged(pod) or pod["metadata"]["name"] in self._passed_over
        if is_over or node != node_of(pod):
            self._passed_over.update(
                name
                for name, each in self.seen.pods.items()
                if node_of(each) == node and not (is_bound(each) or is_gated(each))
            )

    def _promised(self, node: str) -> tuple[list[str], int]:
        """The pods that are named for the node and that kube-scheduler is about to try, and how
        many cards are free there."""
        promised = [
            name
            for name, each in self.seen.pods.items()
            if node_of(each) == node
            and not (is_bound(each) or is_judged(each) or name in self._passed_over)
            and not any(map(is_gated, self.seen.tried_with(each)))
        ]
        return promised, len(self.seen.free(node, self._cards[node]))

    def _left_over(self, node: str) -> int:
        """How many cards of the node are free, and promised to no pod alone."""
        promised, free = self._promised(node)
        return max(free - sum(not group_of(self.seen.pods[name]) for name in promised), 0)

    def _check_lifted(self, of: str) -> None:
        """A gate was lifted: all names were there. Those that kube-scheduler has refused may go on
        without. Where a pod was deleted meanwhile, its successor's gate holds the others back."""
        waiting, bound = self.seen.parts(of)
        is_held = of in self._lost and any(map(is_gated, waiting))
        if not is_held and not any(map(is_judged, waiting)):
            named = sum(map(bool, map(node_of, waiting)))
            assert named + bound >= max(self.quorum[of], 1), f"{of} has a gate less than names"

    def _check_group(self, of: str) -> None:
        """It has names enough if kube-scheduler would try it, and is not bound in part."""
        waiting, bound = self.seen.parts(of)
        if waiting and not any(is_gated(each) or is_judged(each) for each in waiting):
            named = sum(map(bool, map(node_of, waiting)))
            assert named + bound >= max(self.quorum[of], 1), f"{of} has too few names"
        assert bound == 0 or bound >= self.quorum[of] or of in self.ended, f"{of} is bound in part"

    def _held_back(self) -> dict[str, float]:
        """Groups that keep names which nobody can use, each with the seconds that it may do so."""
        found = dict[str, float]()
        for of in self.quorum:
            waiting = self.seen.parts(of)[0]
            if not any(map(node_of, waiting)):
                continue
            # Each naming is a new decision, by what has come free meanwhile.
            names = f"names, as of change {self._namings[of]}"
            if any(map(is_gated, waiting)):
                found[f"{of} has a gate, and keeps {names}"] = _SOON
            elif all(map(is_judged, waiting)):
                found[f"{of} was refused, and keeps {names}"] = _FOLLOWED
        return found

    def _unused(self) -> dict[str, float]:
        """The same for cards that are free for what waits behind nobody. A group that has cards,
        and is refused for something else, holds them against pods alone while it is tried again."""
        free = sum(map(self._left_over, self._cards))
        waiting = [each for each in self.seen.pods.values() if not is_bound(each)]
        members = [each for each in waiting if group_of(each)]
        groups = {*map(group_of, members)}
        if len(groups) > 1 or free < max(len(members), 1):
            return {}
        if members and not all(map(is_judged, members)):
            limit = _SOON if any(map(is_gated, members)) else _FOLLOWED
            return {f"cards are free for {groups}": limit}
        if not any(is_gated(each) for each in waiting if not group_of(each)):
            return {}
        return {f"{groups} holds cards": _FOLLOWED} if groups else {"cards are free": _SOON}


def group_of(pod: Object) -> str:
    """Empty for a pod alone."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def node_of(pod: Object) -> str:
    """The node that is named for the pod; empty without one."""
    return str(pod["status"].get("nominatedNodeName") or "")


def is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def is_gated(pod: Object) -> bool:
    gates = pod["spec"].get("schedulingGates") or ()
    return any(each["name"] == SCHEDULING_GATE for each in gates)


def is_judged(pod: Object) -> bool:
    """Whether kube-scheduler has said anything of the pod."""
    return bool(pod["status"].get("conditions"))


def _devices(claim: Object | None) -> list[_Device]:
    results = (allocation(claim or {}) or {}).get("devices", {}).get("results") or ()
    return [(each["pool"], each["device"]) for each in results]
