"""Which nodes were named to kube-scheduler, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, uid_of
from controller.nominate.limits_claim import is_made, key_to_be_made, uid_to_be_made
from dra_driver.model.claims.claim import Object, all_results, allocation

_GATED: Final = "SchedulingGated"
"""The reason of the condition PodScheduled that a gated pod has, and keeps until the first try."""

_Device = tuple[str, str, str]  # driver, pool, name


@dataclass(frozen=True, slots=True)
class Nomination:
    """Of the pod with that UID. `claims` are allocated as kube-scheduler is expected to do it."""

    uid: str
    node: str
    claims: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """A claim counts as it is. It was expected to get devices of `node` for the pod `user`, and got
    the same ones if that is `as_expected`."""

    user: Key
    node: str
    as_expected: bool


@dataclass(frozen=True, slots=True)
class _Expected:
    """The claim as it is expected to be allocated on the node."""

    node: str
    claim: Object
    devices: frozenset[_Device]


class Nominations:
    """Of the pods that kube-scheduler has not judged yet: their devices count as allocated, because
    the next pod is placed before kube-scheduler allocates them. One instance, one thread.

    At most `limit` pods: each named one makes kube-scheduler filter its node twice for all others.
    Others wait until fewer are named.
    """

    def __init__(self, cache: ClusterCache, limit: int) -> None:
        self._cache = cache
        self._limit = limit
        self._pods: dict[Key, Nomination] = {}
        self._users: dict[Key, Key] = {}  # by claim the pod that it is expected to be allocated for
        self._expected: dict[Key, _Expected] = {}  # by claim
        self._takers: defaultdict[_Device, set[Key]] = defaultdict(set)  # of the same claims
        self._keys: dict[str, Key] = {}  # of the same claims, by UID
        self._waiting: dict[Key, None] = {}  # pods beyond the limit, in their order

    def __len__(self) -> int:
        return len(self._pods)

    def admit(self, key: Key) -> bool:
        """Whether the pod may be named. If not, it waits until fewer are."""
        if self._has_room():
            return True
        self._waiting[key] = None
        return False

    def next_to_admit(self) -> Key | None:
        """The first of the pods that wait, if one more may be named. It waits until it is
        forgotten."""
        return next(iter(self._waiting), None) if self._has_room() else None

    def forget_request(self, key: Key) -> None:
        """The pod does not wait to be named."""
        self._waiting.pop(key, None)

    def has(self, pod: Object) -> bool:
        """Whether the pod was named, and not another one of its name."""
        named = self._pods.get(pods.key_of(pod))
        return named is not None and named.uid == uid_of(pod)

    def of_others(self, pod: Object, claims: Iterable[Object]) -> bool:
        """Whether kube-scheduler is about to allocate one of the claims for another pod: this one
        would fail, and lose its name."""
        key = pods.key_of(pod)
        return any(self._users.get(Key.of_claim(claim), key) != key for claim in claims)

    def on(self, node: str) -> list[Key]:
        """The pods that were named for the node, in the order of their names. Those for which
        nothing is expected any more come last: the others have what is there."""
        named = [key for key, each in self._pods.items() if each.node == node]
        return sorted(named, key=lambda key: not self._expects(key))

    def _expects(self, key: Key) -> bool:
        return any(Key.of_claim(claim) in self._expected for claim in self._pods[key].claims)

    def add(self, pod: Object, node: str, claims: Iterable[Object]) -> None:
        """`claims` are as `Nomination.claims`. Again for a pod that is expected to get others."""
        key = pods.key_of(pod)
        named = self._pods[key] = Nomination(uid_of(pod), node, tuple(claims))
        for claim in named.claims:
            self._users[Key.of_claim(claim)] = key
            self._expect(node, claim)
            self._cache.assume(claim)

    def withdraw(self, key: Key) -> None:
        """Nothing is expected for the pod for the moment."""
        for claim in self._pods[key].claims:
            self._users.pop(Key.of_claim(claim), None)
            self._forget(Key.of_claim(claim))

    def on_claim(self, key: Key, claim: Object | None) -> Settled | None:
        """Something has changed about the claim, or it is gone. Once kube-scheduler has allocated
        it, it counts as it is. Returns None if nothing was expected of it, or still is.

        Of a bound pod the first change counts: the allocation may have come and gone again. A claim
        that kube-scheduler makes for limits counts once it is allocated.
        """
        if claim is not None and (made := self._made_for_limits(claim)) is not None:
            if allocation(claim) is None:
                return None
            key = made
        pod = self._users.get(key, key)
        expected, user = self._expected.get(key), self._pods.get(pod)
        if expected is None:
            return None
        is_same = claim is not None and uid_of(claim) == uid_of(expected.claim)
        if is_same and user is not None and allocation(claim or {}) is None:
            return None
        self._users.pop(key, None)
        self._forget(key)
        taken = frozenset() if claim is None else _devices(claim)
        return Settled(pod, expected.node, as_expected=taken == expected.devices)

    def nodes_of(self, claim: Object) -> set[str]:
        """The nodes on which other claims are expected to get devices that this one has."""
        takers = [self._takers[each] for each in _devices(claim) if each in self._takers]
        others = set[Key]().union(*takers) - {Key.of_claim(claim)}
        return {self._expected[other].node for other in others}

    def end(self, key: Key, *, is_bound: bool = False) -> Nomination | None:
        """The pod was judged, or is gone. The claims of a bound pod count as expected until the
        watch of claims, which may be later than that of pods, has their allocation."""
        named = self._pods.pop(key, None)
        for claim in () if named is None or is_bound else named.claims:
            self._users.pop(Key.of_claim(claim), None)
            self._forget(Key.of_claim(claim))
        return named

    def forget_made(self, key: Key) -> str:
        """Expect no claim for the pod's limits any more. Returns the node whose devices were
        expected for it; empty if there was none."""
        claim = key_to_be_made(key)
        expected = self._expected.get(claim)
        self._users.pop(claim, None)
        self._forget(claim)
        return "" if expected is None else expected.node

    def clear(self) -> None:
        """Another replica leads."""
        self._pods.clear()
        self._users.clear()
        self._waiting.clear()
        for key in list(self._expected):
            self._forget(key)

    def _has_room(self) -> bool:
        return len(self._pods) < self._limit

    def _made_for_limits(self, claim: Object) -> Key | None:
        """The key of the claim that was expected in place of this one; None if it was itself."""
        key = self._keys.get(uid_to_be_made(pods.owning_pod(claim) or ""))
        return key if key is not None and is_made(claim, self._expected[key].claim) else None

    def _expect(self, node: str, claim: Object) -> None:
        key = Key.of_claim(claim)
        self._drop(key)
        expected = self._expected[key] = _Expected(node, claim, _devices(claim))
        self._keys[uid_of(claim)] = key
        for device in expected.devices:
            self._takers[device].add(key)

    def _forget(self, key: Key) -> None:
        """The claim counts as the watch reported it."""
        if (expected := self._drop(key)) is not None:
            self._cache.forget(expected.claim)

    def _drop(self, key: Key) -> _Expected | None:
        expected = self._expected.pop(key, None)
        if expected is None:
            return None
        self._keys.pop(uid_of(expected.claim), None)
        for device in expected.devices:
            self._takers[device].discard(key)
            if not self._takers[device]:
                del self._takers[device]
        return expected


def _devices(claim: Object) -> frozenset[_Device]:
    """Those of other drivers count, too."""
    return frozenset((each.driver, each.pool, each.device) for each in all_results(claim))


def is_judged(pod: Object) -> bool:
    """Whether kube-scheduler has bound the pod, or said why it did not, since its gate was lifted.
    A gate is lifted once, so any such word is from after it."""
    condition = pods.not_scheduled(pod)
    return bool(pods.node_name(pod)) or (condition is not None and condition[0] != _GATED)
