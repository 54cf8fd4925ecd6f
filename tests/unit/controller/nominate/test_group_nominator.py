"""Groups of pods while kube-scheduler allocates: one decision, all names, then all gates."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import pytest

from controller.allocator.nodes.node_set import NodeSet
from controller.groups.trial import Trial
from controller.placer.pod_claims import PodClaims
from dra_driver.kube.errors import Invalid, Unavailable
from dra_driver.kube.resources import NODES, POD_GROUPS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, ANNOTATION_PACK_NODES
from tests.control_plane.cards import in_all_modes
from tests.control_plane.objects import resource_slices
from tests.unit.controller.allocator.build import claim, request
from tests.unit.controller.test_pod_groups import KUEUES, OURS, group
from tests.unit.controller.world import FAIRNESS, QUIET, World, node, pod, reserved

REFUSED: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
PREEMPTING: Final = "pod group preemption: found a placement for podgroup, preempting 1 victims"


class Cluster(World):
    """Nodes by name, each with so many whole cards; racks as labels, where they are given. The
    group `g` is there if `gang`, which is its minCount, is not None."""

    def __init__(
        self,
        cards: dict[str, int],
        racks: dict[str, str] | None = None,
        *,
        gang: int | None = None,
        **settings: Any,
    ) -> None:
        slices = [each for name, count in cards.items() for each in published(name, count)]
        known = {"nomination_waiting": 0} | settings
        super().__init__(slices, allocator=ALLOCATOR_SCHEDULER, settings=known)
        for name in cards:
            self.put(NODES, machine(name, (racks or {}).get(name, "")))
        if gang is not None:
            self.put(POD_GROUPS, group("g", gang))

    def join(self, of: str, *names: str, cards: int = 1, gate: bool = True, **spec: Any) -> None:
        """Members that each ask for so many cards. They come at once."""
        for name in names:
            self.put(RESOURCE_CLAIMS, asking(f"c-{name}", cards))
            gates = [OURS] if gate else []
            spec = {"schedulingGates": gates, "schedulingGroup": {"podGroupName": of}} | spec
            self.put(PODS, pod(name, f"c-{name}", **spec))

    def named(self, *names: str) -> list[str]:
        """The nodes that are named for the pods; empty where none is."""
        pods = [self.api.live[PODS, name] for name in names]
        return [each["status"].get("nominatedNodeName") or "" for each in pods]

    def gated(self, *names: str) -> list[str]:
        pods = [self.api.live[PODS, name] for name in names]
        return [
            name
            for name, each in zip(names, pods, strict=True)
            if OURS in (each["spec"].get("schedulingGates") or ())
        ]

    def change(self, name: str, **status: Any) -> None:
        """kube-scheduler writes the pod's status."""
        found = self.api.live[PODS, name]
        self.put(PODS, found | {"status": found["status"] | status})

    def refuse(self, *names: str, lose: Sequence[str] = ()) -> None:
        """An attempt has failed; those that had found a place lose the name."""
        for name in names:
            gone = {"nominatedNodeName": None} if name in lose else {}
            self.change(name, conditions=[REFUSED], **gone)

    def bind(self, *names: str) -> None:
        for name in names:
            bound = copy.deepcopy(self.api.live[PODS, name])
            bound["spec"]["nodeName"] = bound["status"]["nominatedNodeName"]
            self.put(PODS, bound)

    def end(self, name: str) -> None:
        self.remove(PODS, name)
        self.remove(RESOURCE_CLAIMS, f"c-{name}")

    def notes_of(self, kind: str, name: str) -> list[str]:
        start = f"{kind} {name}: "
        return [each.removeprefix(start) for each in self.recorder.notes if each.startswith(start)]


@cache
def published(name: str, cards: int) -> list[Object]:
    """The slices of a node with so many cards."""
    return resource_slices(name, in_all_modes(*range(cards), allocator=ALLOCATOR_SCHEDULER))


def asking(name: str, cards: int = 1) -> Object:
    return claim(name, [request(count=cards)])


def machine(name: str, rack: str = "") -> Object:
    found = node(name)
    found["metadata"]["labels"] = {"rack": rack} if rack else {}
    found["status"]["allocatable"] = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    return found


def test_all_names_come_before_the_first_gate_is_lifted() -> None:
    world = Cluster({"a": 2, "b": 2}, gang=4)
    world.join("g", *"pqrs")
    world.run_until_idle()
    writes = [
        (change.key.name, bool(change.new["spec"]["schedulingGates"]))
        for change in world.api.store.after(world.api.store.oldest)
        if change.key.resource is PODS and change.new and change.new["status"]
    ]
    assert sorted(writes[:4]) == [(name, True) for name in "pqrs"]
    assert sorted(writes[4:]) == [(name, False) for name in "pqrs"]
    assert sorted(world.named(*"pqrs")) == ["a", "a", "b", "b"]
    assert not world.gated(*"pqrs")


def test_a_gang_that_does_not_fit_holds_nothing_and_says_what_it_is_short_of() -> None:
    world = Cluster({"a": 2, "b": 1}, gang=4)
    world.join("g", *"pqrs")
    assert world.run_until_idle() == []
    [note] = world.notes_of("PodGroup", "g")
    assert note.startswith("3 of 4 pods fit together; short of 1 of gcu.enflame.com: ")
    world.join("other", "x", schedulingGroup=None)
    world.run_until_idle()
    assert world.named("x") == ["b"]


def test_a_few_groups_without_room_are_lifted_for_autoscalers() -> None:
    """A group takes one place."""
    world = Cluster({"a": 1}, nomination_waiting=2)
    for name in "gh":
        world.put(POD_GROUPS, group(name, 2))
        world.join(name, f"{name}-0", f"{name}-1")
        world.run_until_idle()
    assert not world.gated("g-0", "g-1")
    assert world.named("g-0", "g-1") == ["", ""]
    assert world.gated("h-0", "h-1") == ["h-0", "h-1"]


def test_a_gang_waits_for_its_pods_and_no_longer() -> None:
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p")
    assert world.run_until_idle() == []
    world.after(QUIET)
    [note] = world.notes_of("PodGroup", "g")
    assert "needs 2 pods that have their ResourceClaims, and 1 has them" in note
    world.join("g", "q")
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]


@pytest.mark.parametrize(
    ("cards", "sizes", "nodes"),
    [
        pytest.param({"a": 8, "b": 8, "c": 4}, [4, 4], 1, id="one node has room for both"),
        pytest.param({"a": 3, "b": 4, "c": 5}, [3, 2, 4, 3], 3, id="they fit exactly"),
        pytest.param({"a": 4, "b": 4}, [1, 1, 1, 1, 4], 2, id="the largest comes first"),
    ],
)
def test_on_the_fewest_nodes(cards: dict[str, int], sizes: list[int], nodes: int) -> None:
    world = Cluster(cards)
    names = [f"p-{number}" for number in range(len(sizes))]
    world.put(POD_GROUPS, group("g", len(sizes)))
    for name, size in zip(names, sizes, strict=True):
        world.join("g", name, cards=size)
    world.run_until_idle()
    found = world.named(*names)
    assert "" not in found
    assert len(set(found)) == nodes


def test_cpu_of_other_members_counts() -> None:
    """One name too many would push the first member away."""
    world = Cluster({"a": 8, "b": 8})
    containers = [
        {"name": "main", "resources": {"claims": [], "requests": {"cpu": "5"}}},
    ]
    world.put(POD_GROUPS, group("g", 2))
    world.join("g", "p", "q", containers=containers)
    world.run_until_idle()
    assert sorted(world.named("p", "q")) == ["a", "b"]


RACKS: Final = {"a": "r1", "b": "r2", "c": "r2", "d": "r1"}


def test_of_as_few_nodes_those_of_one_rack() -> None:
    world = Cluster({"a": 2, "b": 2, "c": 2, "d": 1}, RACKS, nomination_group_labels="rack", gang=4)
    world.join("g", *"pqrs")
    world.run_until_idle()
    assert sorted(world.named(*"pqrs")) == ["b", "b", "c", "c"]


def test_with_a_topology_key_in_one_domain_or_nowhere() -> None:
    world = Cluster({"a": 2, "b": 2, "c": 1, "d": 2}, RACKS)
    constrained = group("g", 4)
    constrained["spec"]["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    world.put(POD_GROUPS, constrained)
    world.join("g", *"pqrs")
    world.run_until_idle()
    assert sorted(world.named(*"pqrs")) == ["a", "a", "d", "d"]
    tight = group("t", 4)
    tight["spec"]["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    world.put(POD_GROUPS, tight)
    world.join("t", *"wxyz")
    world.run_until_idle()
    assert world.gated(*"wxyz") == list("wxyz")
    [note] = world.notes_of("PodGroup", "t")
    assert note.startswith("3 of 4 pods fit together in one domain of rack (best is rack=r2)")


def test_spread_by_annotation() -> None:
    world = Cluster({"a": 4, "b": 4})
    spread = group("g", 2)
    spread["metadata"]["annotations"] = {ANNOTATION_PACK_NODES: "spread"}
    world.put(POD_GROUPS, spread)
    world.join("g", "p", "q")
    world.run_until_idle()
    assert sorted(world.named("p", "q")) == ["a", "b"]


def test_what_kube_scheduler_did_not_bind_is_taken_back() -> None:
    """`r` was never tried. The cards serve others, and when they are free again all are named."""
    world = Cluster({"a": 3}, gang=3)
    world.join("g", *"pqr")
    world.run_until_idle()
    held = taken(world, "a", 2)
    world.refuse(*"pqr", lose="p")
    world.run_until_idle()
    assert world.named(*"pqr") == ["", "", ""]
    assert "2 of 3 pods fit together" in world.notes_of("PodGroup", "g")[-1]
    world.remove(RESOURCE_CLAIMS, held)
    world.after(20)
    assert world.named(*"pqr") == ["a", "a", "a"]


def test_names_that_were_taken_back_are_not_counted() -> None:
    """kube-scheduler binds the members later, where it likes."""
    world = Cluster({"a": 2, "b": 0}, gang=2)
    world.join("g", *"pq")
    world.run_until_idle()
    taken(world, "a", 1)
    world.refuse(*"pq", lose="p")
    world.run_until_idle()
    for name in "pq":
        bound = copy.deepcopy(world.api.live[PODS, name])
        bound["spec"]["nodeName"] = "b"
        world.put(PODS, bound)
    world.run_until_idle()
    assert world.metric("gcu_controller_nominated_pods_bound_total", {"followed": "false"}) == 0


def taken(world: Cluster, on: str, bus: int) -> str:
    """Somebody's claim has that card."""
    name = f"somebody-{on}-{bus}"
    found = claim(name)
    device = f"whole-0000-{bus:02x}-00-0"
    results = [
        {
            "request": "gcu",
            "driver": "gcu.enflame.com",
            "pool": f"gcu.enflame.com/{on}",
            "device": device,
        }
    ]
    found["status"] = {"allocation": {"devices": {"results": results}}}
    world.put(RESOURCE_CLAIMS, reserved(found, name))
    return name


def test_names_that_were_written_again_are_judged_in_time_whatever_else_comes() -> None:
    """kube-scheduler says nothing of attempts whose verdict is the same."""
    world = Cluster({"a": 2})
    world.put(POD_GROUPS, group("g", 2))
    world.join("g", *"pq")
    world.run_until_idle()
    world.refuse(*"pq", lose="pq")
    world.run_until_idle()
    assert world.named(*"pq") == ["a", "a"]
    taken(world, "a", 0)
    world.after(20)
    assert world.named(*"pq") == ["a", "a"]
    world.after(20)
    assert world.named(*"pq") == ["", ""]


def test_a_member_that_gets_nothing_after_all_loses_its_name_before_the_gates() -> None:
    """kube-scheduler would give it what the others are named for."""
    world = Cluster({"a": 2})
    world.put(POD_GROUPS, group("g", 1))
    world.join("g", *"pqr")
    world.api.write_errors = [Unavailable("away")]  # p's name
    world.run_until_idle()
    assert world.named(*"pqr") == ["", "a", ""]
    taken(world, "a", 0)
    world.after(1)
    assert world.named(*"pqr") == ["a", "", ""]
    names = [
        (name, changed.new["status"].get("nominatedNodeName"))
        for changed in world.api.store.after(world.api.store.oldest)
        if (name := changed.key.name) in {"p", "q", "r"} and changed.new
        if not changed.new["spec"]["schedulingGates"]
    ]
    assert names == [("p", "a"), ("q", None), ("r", None)]
    bound = copy.deepcopy(world.api.live[PODS, "q"])
    bound["spec"]["nodeName"] = "a"
    world.put(PODS, bound)
    world.run_until_idle()
    counted = "gcu_controller_nominated_pods_bound_total"
    assert world.metric(counted, {"followed": "true"}) == 0, "its name was taken away"


def test_what_a_refused_pod_leaves_goes_to_the_pod_that_has_the_node_reserved() -> None:
    """kube-scheduler lacks something else for the first pod, which may use the node, too."""
    world = Cluster({"a": 1}, fairness_patience=FAIRNESS)
    for name in "pq":
        world.join("", name, schedulingGroup=None)
        world.run_until_idle()
    world.after(FAIRNESS)
    assert world.named("p", "q") == ["a", ""]
    world.refuse("p", lose="p")
    world.run_until_idle()
    assert world.named("p", "q") == ["", "a"]


def test_names_for_preemption_are_left_alone() -> None:
    world = Cluster({"a": 2})
    preempting = group("g", 2)
    world.put(POD_GROUPS, preempting)
    world.join("g", "p", "q")
    world.run_until_idle()
    condition = {"type": "PodGroupInitiallyScheduled", "status": "False", "message": PREEMPTING}
    world.put(POD_GROUPS, preempting | {"status": {"conditions": [condition]}})
    world.refuse("p", "q")
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]


def gang_that_lost_a_member() -> Cluster:
    """A gang of three whose names and gates are not written yet, and ``q`` has been deleted."""
    world = Cluster({"a": 3})
    world.pool.is_paused = True
    world.put(POD_GROUPS, group("g", 3))
    world.join("g", *"pqr")
    world.run_until_idle()
    world.end("q")
    return world


def test_a_member_that_is_deleted_in_between_is_replaced() -> None:
    world = gang_that_lost_a_member()
    world.pool.resume()
    world.run_until_idle()
    assert world.gated("p", "r") == ["p", "r"]
    assert world.named("p", "r") == ["", ""]
    world.join("g", "s")
    world.run_until_idle()
    assert world.named(*"prs") == ["a", "a", "a"]
    assert not world.gated(*"prs")


def lacks_a_claim(world: Cluster) -> None:
    """A member comes before its claim is made."""
    member = pod("late", "c-late", schedulingGates=[OURS], schedulingGroup={"podGroupName": "g"})
    world.put(PODS, member)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lacks_a_claim, id="lacks a claim"),
        pytest.param(
            lambda world: world.join("g", "late", schedulingGates=[OURS, KUEUES]), id="is held"
        ),
        pytest.param(lambda world: world.remove(POD_GROUPS, "g"), id="there is no group"),
    ],
)
def test_a_search_is_given_up_when_the_group_is_not_complete_any_more(
    happens: Callable[[Cluster], None],
) -> None:
    """It takes two steps of the first member, which follow those of the claims."""
    members = [f"p-{number:02}" for number in range(66)]
    world = Cluster({"a": 90}, gang=len(members))
    world.run_until_idle()
    world.join("g", *members)
    for _ in (*members, "the first member"):
        world.worker.run_once(0)
    happens(world)
    world.join("", "alone", cards=32, schedulingGroup=None)
    for _ in range(5 * len(members)):
        world.worker.run_once(0)
    assert world.named("alone", "p-00") == ["a", ""]


def test_a_search_that_fails_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Trial.place

    def fails_for_q(trial: Trial, asked: PodClaims, within: NodeSet, **how: Any) -> object:
        if asked.pod["metadata"]["name"] == "q":
            raise KeyError("injected")
        return place(trial, asked, within, **how)

    monkeypatch.setattr(Trial, "place", fails_for_q)
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p", "q")
    world.run_until_idle()
    assert world.metric("gcu_controller_faults_total") == 1
    world.join("", "alone", cards=2, schedulingGroup=None)
    world.run_until_idle()
    assert world.named("alone") == ["a"]


def test_a_group_that_is_gone_while_its_names_are_written_keeps_its_gates() -> None:
    """A gate cannot be set again, and the names would be taken away."""
    world = Cluster({"a": 2}, gang=2)
    world.pool.is_paused = True
    world.join("g", "p", "q")
    world.run_until_idle()
    world.remove(POD_GROUPS, "g")
    world.run_until_idle()
    world.pool.resume()
    world.run_until_idle()
    assert world.named("p", "q") == ["", ""]
    assert world.gated("p", "q") == ["p", "q"]
    world.put(POD_GROUPS, group("g", 2))
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]
    assert not world.gated("p", "q")


@pytest.mark.parametrize("is_being_named", [True, False])
def test_a_node_that_is_lost_before_the_attempt(is_being_named: bool) -> None:
    """kube-scheduler finds no node for the group. Nothing is kept for the names, and all are named
    where there is room later."""
    world = Cluster({"a": 2, "b": 2})
    held = [taken(world, "b", bus) for bus in (0, 1)]
    world.pool.is_paused = is_being_named
    world.put(POD_GROUPS, group("g", 2))
    world.join("g", "p", "q")
    world.run_until_idle()
    world.remove(NODES, "a")
    world.pool.resume()
    world.run_until_idle()
    assert not world.gated("p", "q")
    world.refuse("p", "q")
    world.run_until_idle()
    assert world.named("p", "q") == ["", ""]
    for each in held:
        world.remove(RESOURCE_CLAIMS, each)
    world.after(20)
    assert world.named("p", "q") == ["b", "b"]


def test_a_member_is_deleted_and_min_count_lowered_in_between() -> None:
    world = gang_that_lost_a_member()
    world.put(POD_GROUPS, group("g", 2))
    world.pool.resume()
    world.run_until_idle()
    assert world.named("p", "r") == ["a", "a"]
    assert not world.gated("p", "r")


def test_a_later_member_is_named_near_the_others() -> None:
    world = Cluster({"a": 3, "b": 3}, gang=2)
    world.join("g", "p", "q")
    world.run_until_idle()
    world.bind("p", "q")
    world.join("g", "r")
    world.run_until_idle()
    assert len(set(world.named(*"pqr"))) == 1
    assert not world.gated("r")


def test_a_member_that_comes_while_others_are_named_is_named_after_them() -> None:
    """Its gate holds all of them back."""
    world = Cluster({"a": 2}, gang=0)
    world.pool.is_paused = True
    world.join("g", "p")
    world.run_until_idle()
    world.join("g", "q")
    world.run_until_idle()
    world.pool.resume()
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]
    assert not world.gated("p", "q")


def test_the_next_leader_finishes_what_was_begun() -> None:
    """The first one named two members and lifted one gate."""
    world = Cluster({"a": 2, "b": 1}, gang=3)
    world.join("g", "p", gate=False)
    world.change("p", nominatedNodeName="b")
    world.join("g", "q", "r")
    world.change("q", nominatedNodeName="a")
    world.run_until_idle()
    assert world.named(*"pqr") == ["b", "a", "a"]
    assert not world.gated(*"pqr")


def test_the_next_leader_undoes_what_does_not_fit_any_more() -> None:
    world = Cluster({"a": 2}, gang=3)
    world.join("g", "p", gate=False)
    world.change("p", nominatedNodeName="a")
    world.join("g", "q", "r")
    world.change("q", nominatedNodeName="a")
    world.run_until_idle()
    assert world.named(*"pqr") == ["", "", ""]
    assert world.gated(*"pqr") == ["q", "r"]


def test_a_group_of_kueue_waits_for_it() -> None:
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p")
    world.join("g", "q", schedulingGates=[OURS, KUEUES])
    assert world.run_until_idle() == []
    admitted = copy.deepcopy(world.api.live[PODS, "q"])
    admitted["spec"]["schedulingGates"] = [OURS]
    world.put(PODS, admitted)
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]


def test_members_that_share_a_claim_are_named_for_its_node() -> None:
    world = Cluster({"a": 4, "b": 4}, gang=2)
    world.put(RESOURCE_CLAIMS, claim("shared"))
    for name in "pq":
        in_group = {"podGroupName": "g"}
        member = pod(name, "shared", schedulingGates=[OURS], schedulingGroup=in_group)
        world.put(PODS, member)
    world.run_until_idle()
    assert world.named("p", "q") == ["a", "a"]
    assert not world.gated("p", "q")


def test_a_member_that_may_not_have_what_it_asks_for_keeps_its_group_waiting() -> None:
    """Its gate would be lifted with the others', and kube-scheduler would give it the cards."""
    world = Cluster({"a": 4}, gang=2)
    world.join("g", "p")
    world.put(RESOURCE_CLAIMS, claim("c-q", [request("left"), request("right")]))
    member = pod("q", "c-q", schedulingGates=[OURS], schedulingGroup={"podGroupName": "g"})
    member["spec"]["containers"].append(
        {"name": "other", "resources": {"claims": [{"name": "c-q", "request": "left"}]}}
    )
    world.put(PODS, member)
    world.run_until_idle()
    assert world.gated("p", "q") == ["p", "q"]
    [note] = world.notes_of("PodGroup", "g")
    assert note.startswith("pod q may not have what it asks for: ")
    assert waiting_groups(world)["refused"] == 1


def test_a_basic_group_is_named_as_far_as_the_cards_reach() -> None:
    world = Cluster({"a": 2}, gang=0)
    world.join("g", *"pqr")
    world.run_until_idle()
    assert sorted(world.named(*"pqr")) == ["", "a", "a"]
    assert not world.gated(*"pqr")


def test_a_name_that_fails_is_written_again() -> None:
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p", "q")
    world.api.write_errors = [Unavailable("away")] * 2
    world.run_until_idle()
    assert world.gated("p", "q") == ["p", "q"]
    world.after(1)
    assert world.named("p", "q") == ["a", "a"]
    assert not world.gated("p", "q")


def test_a_name_that_is_refused_keeps_no_group() -> None:
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p", "q")
    world.api.write_errors = [Invalid("no names")]
    world.run_until_idle()
    assert sorted(world.named("p", "q")) == ["", "a"]
    assert not world.gated("p", "q")


def test_min_count_that_is_lowered_is_enough() -> None:
    world = Cluster({"a": 2}, gang=3)
    world.join("g", *"pqr")
    world.run_until_idle()
    assert world.gated(*"pqr") == list("pqr")
    world.put(POD_GROUPS, group("g", 2))
    world.run_until_idle()
    assert sorted(world.named(*"pqr")) == ["", "a", "a"]
    assert not world.gated(*"pqr")


def test_nodes_are_reserved_for_the_group_that_has_waited_longest() -> None:
    """Single pods would take each card that comes free. Those outside the nodes go on."""
    world = Cluster({"a": 2, "b": 2, "c": 1})
    held = [taken(world, node, bus) for node, bus in (("a", 0), ("b", 0), ("b", 1), ("c", 0))]
    world.put(POD_GROUPS, group("g", 4))
    world.join("g", *"pqrs")
    world.run_until_idle()
    world.after(FAIRNESS)
    world.join("", "small", schedulingGroup=None)
    world.run_until_idle()
    assert world.named("small") == [""]
    assert "reserved for pod default/p" in world.notes_of("Pod", "small")[0]
    world.remove(RESOURCE_CLAIMS, held[3])
    world.after(20)
    assert world.named("small") == ["c"]
    for name in held[:3]:
        world.remove(RESOURCE_CLAIMS, name)
    world.after(20)
    assert sorted(world.named(*"pqrs")) == ["a", "a", "b", "b"]


def test_metrics_say_how_many_groups_wait_and_how_long_a_group_took() -> None:
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p")
    world.run_until_idle()
    assert waiting_groups(world) == {"incomplete": 1.0, "devices": 0.0, "refused": 0.0}
    world.join("g", "q", cards=2)
    world.run_until_idle()
    assert waiting_groups(world) == {"incomplete": 0.0, "devices": 1.0, "refused": 0.0}
    world.put(POD_GROUPS, group("g", 1))
    world.run_until_idle()
    assert waiting_groups(world) == {"incomplete": 0.0, "devices": 0.0, "refused": 0.0}
    world.end("p")
    world.time += 3.0
    world.bind("q")
    world.run_until_idle()
    assert world.metric("gcu_controller_group_bound_seconds_count") == 1
    assert world.metric("gcu_controller_group_bound_seconds_sum") == 3


def waiting_groups(world: Cluster) -> dict[str, float]:
    found = world.registry.get_sample_value
    reasons = ("incomplete", "devices", "refused")
    return {
        each: found("gcu_controller_waiting_groups", {"reason": each}) or 0.0 for each in reasons
    }


def test_a_group_that_is_gone_at_once_with_a_member_that_just_came_waits_no_longer() -> None:
    """As a Job whose pods are deleted while it makes others for them."""
    world = Cluster({"a": 1}, gang=2)
    world.join("g", "p")
    world.run_until_idle()
    assert waiting_groups(world)["incomplete"] == 1
    world.join("g", "q")
    world.end("p")
    world.end("q")
    world.run_until_idle()
    assert waiting_groups(world)["incomplete"] == 0


def test_a_group_of_which_all_members_are_held_waits_for_nothing_here() -> None:
    world = Cluster({"a": 1}, gang=2)
    world.join("g", "p")
    world.join("g", "q", schedulingGates=[OURS, KUEUES])
    world.run_until_idle()
    assert waiting_groups(world)["incomplete"] == 1
    world.end("p")
    world.run_until_idle()
    world.end("q")
    world.run_until_idle()
    assert waiting_groups(world)["incomplete"] == 0


def test_a_group_says_that_its_first_member_is_held() -> None:
    world = Cluster({"a": 2}, gang=2)
    world.join("g", "p", schedulingGates=[OURS, KUEUES])
    world.join("g", "q")
    world.run_until_idle()
    world.after(QUIET)
    [note] = world.notes_of("PodGroup", "g")
    assert "is held by a scheduling gate" in note
