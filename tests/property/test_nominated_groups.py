"""Whatever comes and goes: groups are named whole or not at all, hold nothing while they wait, and
all of them run in the end, though single pods come for as long as a group waits.

Random histories of gangs, Basic groups and single pods, with a kube-scheduler that is played: it
tries what has no gate, takes the named node where it has room, and binds a gang whole or not at
all. Pods run for a while and end. Leaders change, pods are deleted, and writes fail.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Final

import pytest

from controller.queue.backoff import BackoffReason
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from tests.property.group_audit import Audit, group_of, is_bound, is_gated, node_of
from tests.seed import Sample, told
from tests.unit.controller.nominate.test_group_nominator import REFUSED, Cluster, asking
from tests.unit.controller.test_pod_groups import OURS, group
from tests.unit.controller.world import pod

HISTORIES: Final = Sample(always=30, of_the_day=30, soak=100_000)
_MOST_ARRIVALS: Final = 8
_STEPS: Final = 800
_STEP: Final = 5.0  # seconds
_PATIENCE: Final = 30.0  # after which nodes are reserved
_LONGEST_BACKOFF: Final = BackoffReason.CALL_FAILED.value[1]
_SINGLES: Final = 2  # that wait for each card that a group may need


class History:
    """All that happens is drawn from the seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._cards = {name: self._chance.randint(1, 4) for name in "abcd"[: seed % 4 + 1]}
        self.world = Cluster(self._cards, fairness_patience=_PATIENCE)
        self.world.api.before_error = self._fail
        self._audit = Audit(self.world.api.store, self._cards)
        self._seen = self._audit.seen
        self._quorum = self._audit.quorum
        self._made = 0
        self._terms = 1
        self._left = self._chance.randint(1, _MOST_ARRIVALS)
        self._ends: dict[str, float] = {}  # of pods that run
        self._lacks_until: dict[str, float] = {}  # groups and pods that lack something else

    def play(self) -> None:
        for _ in range(_STEPS):
            if self._left and self._chance.random() < 0.5:
                self._left -= 1
                self._arrive()
            self._overtake()
            self._disturb()
            self.world.run_until_idle()
            self._audit.check(self.world.time)
            self._schedule()
            self._end_some()
            self.world.after(_STEP)
            self._audit.check(self.world.time)
            if not self._left and not self._waiting():
                return
        raise AssertionError(f"they wait for ever: {self._waiting()}")

    def _arrive(self) -> None:
        """A gang or a Basic group that fits on the empty nodes, or a pod alone."""
        name = f"g{len(self._quorum)}"
        if self._chance.random() < 0.3:
            self._join("")
            return
        size = self._chance.randint(1, min(4, sum(self._cards.values())))
        quorum = self._chance.choice([0, size, self._chance.randint(1, size)])
        self._quorum[name] = quorum
        self.world.put(POD_GROUPS, group(name, quorum))
        for _ in range(size):
            self._join(name)
            if self._chance.random() < 0.3:
                self.world.run_until_idle()

    def _overtake(self) -> None:
        """While a group waits, pods wait beside it that would take each card that comes free."""
        waiting = [group_of(self._seen.pods[name]) for name in self._waiting()]
        if any(waiting):
            for _ in range(_SINGLES - waiting.count("")):
                self._join("")

    def _join(self, of: str) -> None:
        self._made += 1
        name = f"p{self._made:03}"
        self.world.put(RESOURCE_CLAIMS, asking(f"c-{name}"))
        spec: Object = {"schedulingGroup": {"podGroupName": of}} if of else {}
        made = pod(name, f"c-{name}", schedulingGates=[OURS], **spec)
        at = datetime.fromtimestamp(self.world.time, UTC)
        made["metadata"]["creationTimestamp"] = f"{at:%Y-%m-%dT%H:%M:%SZ}"
        self.world.put(PODS, made)

    def _disturb(self) -> None:
        chance = self._chance.random()
        if chance < 0.05 and self._left:  # the next leader does not know who has waited how long
            self._terms += 1
            self.world.fence.close()
            self.world.worker.run_once(0)
            self.world.lead(str(self._terms))
        elif chance < 0.15:
            self.world.api.write_errors = [Unavailable("away")] * self._chance.randint(1, 3)
        elif chance < 0.2 and (waiting := self._waiting()):
            lost = self._chance.choice(waiting)
            of = group_of(self._seen.pods[lost])
            self.world.end(lost)
            if of:
                self._join(of)

    def _fail(self) -> None:
        self._audit.calm_from = self.world.time + _LONGEST_BACKOFF

    def _schedule(self) -> None:
        """kube-scheduler tries what it may try, in any order; some of it later."""
        waiting: dict[str, list[Object]] = {}
        for name in self._waiting():
            found = self._seen.pods[name]
            waiting.setdefault(group_of(found) or name, []).append(found)
        for name in self._chance.sample(sorted(waiting), len(waiting)):
            if self._chance.random() < 0.8 and not any(map(is_gated, waiting[name])):
                self._attempt(waiting[name], self._quorum.get(name, 1))

    def _attempt(self, members: list[Object], quorum: int) -> None:
        free, places = self._free(), dict[str, tuple[str, str]]()
        for each in members:
            named = node_of(each)
            choice = sorted(free, key=lambda node: (node != named, -len(free[node]), node))
            node = next((node for node in choice if free[node]), None)
            if node is not None:
                places[each["metadata"]["name"]] = node, free[node].pop(0)
        of = group_of(members[0])
        bound = sum(map(is_bound, self._seen.members[of].values())) if of else 0
        is_whole = bool(places) and len(places) + bound >= quorum
        unit, now = of or members[0]["metadata"]["name"], self.world.time
        if self._chance.random() < 0.05:
            self._lacks_until[unit] = now + self._chance.uniform(0, 120)
        lacks_else = now < self._lacks_until.get(unit, 0.0)
        for each in members:
            name = each["metadata"]["name"]
            if is_whole and not lacks_else and name in places:
                self._bind(name, *places[name])
            else:
                gone = {"nominatedNodeName": None} if name in places else {}
                self.world.change(name, conditions=[REFUSED], **gone)

    def _bind(self, name: str, node: str, device: str) -> None:
        found = self.world.claim(f"c-{name}")
        result = {"request": "gcu", "driver": DRIVER, "pool": f"{DRIVER}/{node}", "device": device}
        user = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        self.world.put(RESOURCE_CLAIMS, found | {"status": status})
        pod = self._seen.pods[name]
        self.world.put(PODS, pod | {"spec": pod["spec"] | {"nodeName": node}})
        self._ends[name] = self.world.time + self._chance.uniform(10, 120)

    def _end_some(self) -> None:
        for name in [each for each, at in self._ends.items() if at <= self.world.time]:
            del self._ends[name]
            if of := group_of(self._seen.pods[name]):
                self._audit.ended.add(of)
                if self._quorum[of] > 1:  # else kube-scheduler would bind no other one any more
                    self._quorum[of] = 1
                    self.world.put(POD_GROUPS, group(of, 1))
            self.world.end(name)

    def _free(self) -> dict[str, list[str]]:
        """By node, the devices that no claim has."""
        self._audit.catch_up()
        return {name: self._seen.free(name, cards) for name, cards in self._cards.items()}

    def _waiting(self) -> list[str]:
        """The pods that are not bound, in the order in which they came."""
        self._audit.catch_up()
        return [name for name, each in self._seen.pods.items() if not is_bound(each)]


@pytest.mark.parametrize("seeds", HISTORIES.blocks(10), ids=str)
def test_all_groups_run_in_the_end(seeds: range) -> None:
    for seed in seeds:
        with told(seed):
            History(seed).play()
