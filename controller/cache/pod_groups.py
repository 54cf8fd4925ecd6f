"""Groups of pods (scheduling.k8s.io, PodGroup): how many members are there, and how many are
served.

kube-scheduler tries a group as one (1.37.1, backend/queue/scheduling_queue.go,
plugins/gangscheduling): none of its pods while one of them has a scheduling gate, while the
PodGroup does not exist, or while a gang has fewer than ``minCount`` pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controller.cache import pods
from controller.cache.keys import Key, Subject, full_name, uid_of
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import ANNOTATION_PACK_NODES

Name = str  # namespace/name


@dataclass(frozen=True, slots=True)
class Unit:
    """What is bound or released as one: a pod, or the waiting members of a gang. `is_complete`: so
    many of them have their devices that kube-scheduler can bind it."""

    uid: str
    pods: Sequence[Object]
    is_complete: bool = True


class Member(Enum):
    """What a pod is for its group. A pod that has ended, or is being deleted and was not bound, is
    no member."""

    HELD = "held by a scheduling gate that is not ours"
    INCOMPLETE = "lacks a claim"
    COMPLETE = "has all its claims"
    REFUSED = "may not have what its claims request"
    SERVED = "has devices for all claims of ours"
    BOUND = "bound"


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A group at this moment. `min_count` is 0 unless it is a gang. `counts` has the members by
    what they are. `obj` is the PodGroup, empty where it does not exist."""

    name: Name
    uid: str
    exists: bool
    min_count: int
    counts: Mapping[Member, int]
    obj: Object = field(default_factory=dict)

    @property
    def topology_key(self) -> str:
        """The label by whose values kube-scheduler keeps the group together; empty without one."""
        constraints = (self.obj.get("spec") or {}).get("schedulingConstraints") or {}
        return next((str(each["key"]) for each in constraints.get("topology") or ()), "")

    @property
    def packing(self) -> Packing | None:
        """How the group itself is to be packed on nodes; None where it says nothing that is
        understood."""
        metadata = self.obj.get("metadata") or {}
        said = (metadata.get("annotations") or {}).get(ANNOTATION_PACK_NODES)
        return Packing(said) if said in set(Packing) else None

    @property
    def is_preempting(self) -> bool:
        """Whether kube-scheduler ends other pods for the group, and has named the nodes of its pods
        for that (1.37.2, `PodGroupEvaluator.Preempt`)."""
        return any(
            condition["status"] == "False" and words in str(condition.get("message"))
            for condition in (self.obj.get("status") or {}).get("conditions") or ()
            for words in _PREEMPTING
        )

    @property
    def is_gang(self) -> bool:
        return self.min_count > 0

    @property
    def served(self) -> int:
        """How many members have their devices."""
        return self.counts[Member.SERVED] + self.counts[Member.BOUND]

    @property
    def complete(self) -> int:
        """How many members have them, or can be served."""
        return self.served + self.counts[Member.COMPLETE]

    @property
    def is_whole(self) -> bool:
        """Whether as many members have their devices as kube-scheduler binds together."""
        return self.served >= self.min_count

    def quorum(self, placed: int) -> int:
        """How many more of the waiting members kube-scheduler binds together or not at all, if so
        many are bound or have a node; of a Basic group it binds any."""
        return max(0, max(self.min_count, 1) - placed)

    def waits_for(self) -> str | None:
        """What the group lacks before kube-scheduler would try it; None if it lacks nothing."""
        if not self.exists:
            return f"PodGroup {self.name} does not exist. Create it, or make the pod without it"
        for member in (Member.HELD, Member.INCOMPLETE):
            if self.counts[member]:
                return (
                    f"a pod of PodGroup {self.name} {_LACK[member]}, so kube-scheduler tries no "
                    "pod of the group. Until then nothing is allocated for the group"
                )
        if self.complete < self.min_count:
            return (
                f"PodGroup {self.name} needs {self.min_count} pods that have their ResourceClaims, "
                f"and {self.complete} {'has' if self.complete == 1 else 'have'} them. Until then "
                "nothing is allocated, because kube-scheduler binds no pod of such a group"
            )
        return None

    def may_be_ungated(self) -> bool:
        """Whether our gates are lifted: one member of a Basic group is served, or as many members
        of a gang as kube-scheduler binds together."""
        return self.waits_for() is None and self.is_whole and self.served > 0


_PREEMPTING: Final = (
    "pod group preemption: found a placement",
    "pod group preemption: ongoing preemption",
)
_LACK: Final = {
    Member.HELD: "is held by a scheduling gate",
    Member.INCOMPLETE: "names a ResourceClaim that does not exist",
}


def min_count(group: Object) -> int:
    """How many pods of the PodGroup are bound together; 0 unless it is a gang."""
    policy = group["spec"].get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 0)


@dataclass(slots=True)
class _Group:
    obj: Object | None = None
    members: dict[Name, Member] = field(default_factory=dict)  # in the order in which they came
    counts: Counter[Member] = field(default_factory=Counter)
    phase: tuple[object, ...] | None = None  # when its members were woken last

    def put(self, name: Name, member: Member | None) -> None:
        """The pod is that now; no member any longer if None."""
        if (old := self.members.get(name)) is not None:
            self.counts[old] -= 1
        if member is None:
            self.members.pop(name, None)
        else:
            self.members[name] = member
            self.counts[member] += 1


class PodGroups:
    """All groups, by name. One thread uses it.

    Whether a pod is served or refused is what its last step found (`set_found`); everything else is
    as the watches report it. Where the API server does not serve PodGroups, or forbids the list, a
    pod that names a group is like any other pod.
    """

    def __init__(self) -> None:
        self._is_followed = False
        self._groups: dict[Name, _Group] = {}
        self._group_of: dict[Name, Name] = {}  # by the pod's name
        self._changed: set[Name] = set()

    def follow(self, *, is_served: bool) -> None:
        """The groups were listed, or cannot be."""
        if is_served is not self._is_followed:
            self._is_followed = is_served
            self._changed |= self._groups.keys()

    def set_group(self, name: Name, obj: Object | None) -> None:
        """The PodGroup as it is now; None if it was deleted."""
        self._groups.setdefault(name, _Group()).obj = obj
        self._on_changed(name)

    def set_pod(self, name: Name, pod: Object | None, *, has_claims: bool) -> None:
        """The pod as it is now; None if it was deleted. `has_claims`: all its claims exist."""
        group_name = None if pod is None else pods.group_name(pod)
        member = None if pod is None or group_name is None else _member(pod, has_claims=has_claims)
        before = self._group_of.pop(name, None)
        if before is not None and (before != group_name or member is None):
            self._groups[before].put(name, None)
            self._on_changed(before)
        if group_name is None or member is None:
            return
        self._group_of[name] = group_name
        group = self._groups.setdefault(group_name, _Group())
        old = group.members.get(name)
        if old is not member and not (member is Member.COMPLETE and old in _FOUND):
            group.put(name, member)
            self._on_changed(group_name)

    def is_member(self, name: Name) -> bool:
        """Whether the pod of that name is a member of any group."""
        return name in self._group_of

    def set_found(self, pod: Object, member: Member) -> None:
        """The step of the pod, which is not bound, found that it is COMPLETE, SERVED or REFUSED."""
        name = full_name(pod)
        group_name = self._group_of.get(name)
        if group_name is None:
            return
        group = self._groups[group_name]
        if group.members[name] in {Member.COMPLETE, *_FOUND} - {member}:
            group.put(name, member)
            self._on_changed(group_name)

    def group_of(self, pod: Object) -> PodGroup | None:
        """The pod's group; None for a pod without one."""
        name = pods.group_name(pod)
        return None if name is None or not self._is_followed else self._view(name)

    def waiting_members(self, name: Name) -> list[Key]:
        """The members of the group of that name that are not bound, in the order in which they
        came."""
        members = self._members(name).items()
        return [_key(pod) for pod, member in members if member is not Member.BOUND]

    def first_waiting(self, name: Name) -> Key | None:
        """The first of these that no gate of others holds; None without any. It stays the first
        while it waits."""
        members = self._members(name).items()
        aside = (Member.BOUND, Member.HELD)
        first = next((pod for pod, member in members if member not in aside), None)
        return None if first is None else _key(first)

    def bound_members(self, name: Name) -> list[Key]:
        """The members of the group of that name that are bound."""
        members = self._members(name).items()
        return [_key(pod) for pod, member in members if member is Member.BOUND]

    def wake(self) -> Iterator[Key]:
        """The waiting members of groups that may do now what they could not do at the last call,
        or the reverse."""
        changed, self._changed = self._changed, set()
        for name in sorted(changed):
            group = self._groups.get(name)
            if group is None:
                continue
            view = self._view(name)
            phase = (
                self._is_followed,
                view.waits_for() is None,
                view.may_be_ungated(),
                view.min_count,
                view.is_preempting,
            )
            if phase != group.phase:
                group.phase = phase
                yield from self.waiting_members(name)

    def _members(self, name: Name) -> Mapping[Name, Member]:
        group = self._groups.get(name)
        return {} if group is None else group.members

    def _view(self, name: Name) -> PodGroup:
        group = self._groups.get(name) or _Group()
        return PodGroup(
            name=name,
            uid="" if group.obj is None else uid_of(group.obj),
            exists=group.obj is not None,
            min_count=0 if group.obj is None else min_count(group.obj),
            counts=Counter(group.counts),
            obj=group.obj or {},
        )

    def _on_changed(self, name: Name) -> None:
        self._changed.add(name)
        group = self._groups[name]
        if group.obj is None and not group.members:
            del self._groups[name]


_FOUND: Final = frozenset({Member.SERVED, Member.REFUSED})  # by the step of a COMPLETE pod


def _member(pod: Object, *, has_claims: bool) -> Member | None:
    if pods.is_done(pod):
        return None
    if pods.node_name(pod):
        return Member.BOUND
    if pods.is_deleting(pod):
        return None
    if pods.is_held_by_others(pod):
        return Member.HELD
    return Member.COMPLETE if has_claims else Member.INCOMPLETE


def _key(name: Name) -> Key:
    namespace, _, pod = name.partition("/")
    return Key(Subject.POD, namespace, pod)
