"""Whoever waits, pauses, fails or goes: no card is held twice, and none is held in vain.

Random histories of pods alone, groups and gangs. kube-scheduler binds some of them.
docs/dev/controller.md has the rules ("The clock", "Groups of pods").
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import pytest

from controller.allocating.bind_clock import UNUSED_LIMIT
from dra_driver.kube.errors import Conflict, KubeError, Unavailable
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import results
from dra_driver.model.names import SCHEDULING_GATE
from tests.property.random_cluster import FOREIGN_GATE, Cluster, KubeScheduler, PodPlan
from tests.seed import Sample, told

HISTORIES: Final = Sample(always=15, of_the_day=20, soak=2_000)
_STEP: Final = 5.0  # seconds of the cluster's clock, as all times here
_TROUBLED: Final = 600.0
"""Until then writes fail, and groups are made anew; what people plan is done by then, too."""
_FOR_EVER: Final = 9000.0
_HELD_AT_MOST: Final = UNUSED_LIMIT + 60.0  # an error in a write may delay the release
_WRITE_ERRORS: Final = (Unavailable("503"), Conflict("changed", status=409), KubeError("refused"))


class History:
    """All that happens is drawn from the seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.cluster = Cluster(self._chance)
        self._scheduler = KubeScheduler(self.cluster, self._chance)
        self._begin = self.cluster.world.time
        self._planned: list[tuple[float, Callable[[], None]]] = []
        self._held_since: dict[str, float] = {}  # by claims that no pod has reserved
        self._pods = 0
        for number in range(self._chance.randint(1, 4)):
            self._plan_group(f"g{number}")
        for _ in range(self._chance.randint(1, 5)):
            self._plan_pod()

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.cluster.world.time - self._begin

    def play(self) -> None:
        """Until nobody waits who could run."""
        while self.now < _TROUBLED or (waiting_in_vain(self.cluster) and self.now < _FOR_EVER):
            for each in self._due():
                each()
            if self.now < _TROUBLED:
                self._trouble()
            self._scheduler.run_once()
            self._pass_time()

    def rest(self) -> None:
        """The controller ends what is under way: neither people nor kube-scheduler do anything."""
        for _ in range(12):
            self._pass_time()

    def end(self) -> None:
        """All is deleted."""
        for name in list(self.cluster.pods):
            self.cluster.delete_pod(name)
        for name in list(self.cluster.groups):
            self.cluster.delete_group(name)
        self.rest()

    def _pass_time(self) -> None:
        self.cluster.world.after(_STEP)
        assert_no_card_is_held_twice(self.cluster)
        self._assert_nothing_is_held_too_long()

    def _assert_nothing_is_held_too_long(self) -> None:
        claims = {name for plan in self.cluster.pods.values() for name in plan.claims}
        held = sorted(filter(self.cluster.is_held, claims))
        self._held_since = {name: self._held_since.get(name, self.now) for name in held}
        too_long = [n for n, since in self._held_since.items() if self.now > since + _HELD_AT_MOST]
        assert too_long == []

    def _due(self) -> list[Callable[[], None]]:
        due = [each for each in self._planned if each[0] <= self.now]
        self._planned = [each for each in self._planned if each[0] > self.now]
        return [do for _, do in sorted(due, key=lambda each: each[0])]

    def _trouble(self) -> None:
        chance, cluster = self._chance, self.cluster
        if chance.random() < 0.05:
            cluster.world.api.write_errors = [chance.choice(_WRITE_ERRORS)]
        if cluster.groups and chance.random() < 0.02:
            name = chance.choice(sorted(cluster.groups))
            min_count = chance.choice((0, 1, 2, cluster.groups[name]))
            cluster.delete_group(name)
            self._at(self.now + chance.choice((0, 0, 60)), cluster.make_group, name, min_count)

    def _plan_group(self, name: str) -> None:
        chance = self._chance
        min_count = chance.choice((0, 0, 1, 2, 2, 3))
        self._at(chance.choice((0, 0, 0, 40)), self.cluster.make_group, name, min_count)
        shared = f"c-{name}" if chance.random() < 0.2 else ""
        if shared:
            self._at(0, self.cluster.make_claim, shared, 1)
        for _ in range(max(1, min_count + chance.choice((0, 0, 0, 1, -1)))):
            self._plan_pod(name, shared if chance.random() < 0.6 else "")

    def _plan_pod(self, group: str = "", shared: str = "") -> None:
        chance = self._chance
        name, at = f"p{self._pods}", chance.choice((0, 0, 5, 60, 200))
        self._pods += 1
        plan = PodPlan(
            name,
            self._plan_claims(name, group, shared, at),
            gates=[
                *([SCHEDULING_GATE] if chance.random() < 0.5 else ()),
                *([FOREIGN_GATE] if chance.random() < 0.15 else ()),
            ],
            group=group,
            is_scheduled=bool(group) or chance.random() < 0.7,
        )
        self._at(at, self.cluster.make_pod, plan)
        self._at(at + chance.choice((20, 20, 100, _FOR_EVER)), self.cluster.lift_foreign_gate, name)
        if chance.random() < 0.1:
            self._at(at + chance.choice((10, 50, 400)), self.cluster.delete_pod, name)

    def _plan_claims(self, name: str, group: str, shared: str, pod_at: float) -> Sequence[str]:
        """The pod's claims: its own, the group's, or both. Its own may come late, or never."""
        chance = self._chance
        if group and chance.random() < 0.1:
            return ()
        if shared and chance.random() < 0.7:
            return (shared,)
        own, delay = f"c-{name}", chance.choice((0, 0, 0, 0, 30))
        if chance.random() < 0.95:
            self._at(pod_at + delay, self.cluster.make_claim, own, chance.choice((1, 1, 1, 2)))
        return (shared, own) if shared else (own,)

    def _at(self, at: float, do: Callable[..., None], *args: object) -> None:
        self._planned.append((at, partial(do, *args)))


def assert_no_card_is_held_twice(cluster: Cluster) -> None:
    held = [
        (each.pool, each.device)
        for (resource, _), found in cluster.world.api.live.items()
        if resource is RESOURCE_CLAIMS
        for each in results(found)
    ]
    assert len(held) == len(set(held))


def waiting_in_vain(cluster: Cluster) -> list[str]:
    """The pods that a scheduler would bind if they had their cards, which they could have."""
    return [
        each.name
        for group in ("", *cluster.groups)
        if not group or (is_tried(cluster, group) and fits_whole(cluster, group))
        for each in cluster.waiting(group)
        if each.is_scheduled and not lacks_anything(cluster, each) and fits(cluster, each)
    ]


def lacks_anything(cluster: Cluster, plan: PodPlan) -> bool:
    return cluster.has_gate(plan.name, FOREIGN_GATE) or not cluster.has_all_claims(plan)


def is_tried(cluster: Cluster, group: str) -> bool:
    """Whether kube-scheduler would try the group as it is, but for our gates."""
    return (
        group in cluster.groups
        and len(cluster.members(group)) >= cluster.groups[group]
        and not any(lacks_anything(cluster, each) for each in cluster.waiting(group))
    )


def fits(cluster: Cluster, *plans: PodPlan) -> bool:
    """Whether one node has the cards for all of them."""
    names = {name for plan in plans for name in plan.claims}
    wanted = (cluster.world.claim(name)["spec"]["devices"]["requests"] for name in names)
    cards: int = sum(each[0]["exactly"]["count"] for each in wanted)
    return cards <= max(cluster.cards.values())


def fits_whole(cluster: Cluster, group: str) -> bool:
    """Whether the gang fits, however its cards are placed; a Basic group need not as a whole."""
    return not cluster.groups[group] or fits(cluster, *cluster.waiting(group))


def gates_left(cluster: Cluster) -> list[str]:
    """The pods that kube-scheduler would bind if our gates were gone."""
    return [
        each.name
        for group in ("", *cluster.groups)
        if not group or (is_tried(cluster, group) and is_served(cluster, group))
        for each in cluster.waiting(group)
        if cluster.has_gate(each.name)
        and (group or (cluster.served_on(each) and not lacks_anything(cluster, each)))
    ]


def is_served(cluster: Cluster, group: str) -> bool:
    """Whether as many members have their cards as are bound together."""
    served = [each for each in cluster.members(group) if cluster.served_on(each)]
    return len(served) >= max(1, cluster.groups[group])


def held_in_vain(cluster: Cluster) -> list[str]:
    """The claims that are allocated for pods which kube-scheduler would not try."""
    return [
        claim
        for plan in cluster.pods.values()
        if (not is_tried(cluster, plan.group) if plan.group else lacks_anything(cluster, plan))
        for claim in plan.claims
        if cluster.is_held(claim)
    ]


def remembered(cluster: Cluster) -> set[str]:
    """The UIDs of the pods and groups that the controller knows something about."""
    clocks = cluster.world.clocks
    return {*clocks.bind._units, *clocks.bind._promised, *clocks.backoff._pods}


@pytest.mark.parametrize("seeds", HISTORIES.blocks(5))
def test_no_card_is_held_in_vain_and_no_pod_waits_for_ever(seeds: range) -> None:
    for seed in seeds:
        with told(seed):
            check(History(seed))


def check(history: History) -> None:
    cluster = history.cluster
    history.play()
    assert waiting_in_vain(cluster) == []
    history.rest()
    assert gates_left(cluster) == []
    assert held_in_vain(cluster) == []
    history.end()
    assert remembered(cluster) == set()
    assert cluster.world.metric("gcu_controller_faults_total") == 0
