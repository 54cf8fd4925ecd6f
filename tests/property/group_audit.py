"""What must hold of groups whatever happens, read from the history of a played API server."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import SCHEDULING_GATE
from tests.fake_api.store import Entry, Store

_KEPT: Final = 20.0
"""Seconds that names may stay at a group with a gate: the server may refuse to take them back."""

Device = tuple[str, str]  # pool, name


class Seen:
    """The pods by their names, in the order in which they came, and who has which device. Members
    of groups are by the group's name, pods alone are in that of the empty name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = store.version
        self.pods: dict[str, Object] = {}
        self.members: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self.holders: dict[Device, str] = {}
        self._audit = Audit(self.members)
        self.quorum = self._audit.quorum
        self.ended = self._audit.ended

    def catch_up(self) -> bool:
        """Read what has happened; whether that is anything. Fails where it was not right at any
        moment."""
        entries = self._store.after(self._version)
        self._version = self._store.version
        for entry in entries:
            if entry.key.resource is PODS:
                self._on_pod(entry)
            elif entry.key.resource is RESOURCE_CLAIMS:
                self._on_claim(entry)
        return bool(entries)

    def check(self, now: float) -> None:
        """The controller is idle at that time, in seconds."""
        if self.catch_up():
            self._audit.check_all()
        self._audit.check_kept(now)

    def _on_pod(self, entry: Entry) -> None:
        name, pod = entry.key.name, entry.new
        of = group_of(pod or entry.old or {})
        if pod is None:
            del self.pods[name], self.members[of][name]
            return
        self.pods[name] = self.members[of][name] = pod
        if of and entry.old is not None and is_gated(entry.old) and not is_gated(pod):
            self._audit.check_lifted(of)

    def _on_claim(self, entry: Entry) -> None:
        for claim in filter(None, (entry.old,)):
            for device in devices_of(claim):
                del self.holders[device]
        for device in devices_of(entry.new) if entry.new else ():
            assert self.holders.setdefault(device, entry.key.name) == entry.key.name


class Audit:
    """`members` are those of each group. The writer of a history says in `quorum` how many each
    group needs, and in `ended` of which one a member has run."""

    def __init__(self, members: dict[str, dict[str, Object]]) -> None:
        self._members = members
        self.quorum: dict[str, int] = {}
        self.ended: set[str] = set()
        self._named_since: dict[str, float] = {}  # groups that have a gate and a name
        self._suspect: set[str] = set()

    def check_lifted(self, of: str) -> None:
        """A gate was lifted: all names were there. Those that kube-scheduler has refused may go on
        without."""
        waiting, bound = self._parts(of)
        if not any(map(is_judged, waiting)):
            named = sum(map(is_named, waiting))
            assert named + bound >= max(self.quorum[of], 1), f"a gate before all names: {of}"

    def check_all(self) -> None:
        """No group that kube-scheduler would try has too few names, and none is bound in part."""
        self._suspect.clear()
        for of in self.quorum:
            waiting, bound = self._parts(of)
            named = sum(map(is_named, waiting))
            has_gate = any(map(is_gated, waiting))
            if has_gate and named:
                self._suspect.add(of)
            if waiting and not has_gate and not any(map(is_judged, waiting)):
                assert named + bound >= max(self.quorum[of], 1), f"too few names: {of}"
            assert bound == 0 or bound >= self.quorum[of] or of in self.ended, f"in part: {of}"

    def check_kept(self, now: float) -> None:
        """A group with a gate has no name for long: nothing is held for it."""
        for of in [*self._named_since]:
            if of not in self._suspect:
                del self._named_since[of]
        for of in self._suspect:
            since = self._named_since.setdefault(of, now)
            assert now - since <= _KEPT, f"names are kept: {of}"

    def _parts(self, of: str) -> tuple[list[Object], int]:
        """The members that wait, and how many are bound."""
        members = self._members[of].values()
        waiting = [each for each in members if not is_bound(each)]
        return waiting, len(members) - len(waiting)


def group_of(pod: Object) -> str:
    """Empty for a pod alone."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def is_gated(pod: Object) -> bool:
    gates = pod["spec"].get("schedulingGates") or ()
    return any(each["name"] == SCHEDULING_GATE for each in gates)


def is_judged(pod: Object) -> bool:
    """Whether kube-scheduler has said anything of the pod."""
    return bool(pod["status"].get("conditions"))


def is_named(pod: Object) -> bool:
    return bool(pod["status"].get("nominatedNodeName"))


def devices_of(claim: Object) -> list[Device]:
    results = (allocation(claim) or {}).get("devices", {}).get("results") or ()
    return [(each["pool"], each["device"]) for each in results]
