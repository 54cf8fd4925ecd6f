"""Groups of pods: nothing is held for a group that kube-scheduler cannot bind, and no gate keeps a
group back."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from controller.allocating.bind_clock import UNUSED_LIMIT
from controller.cache.cache import WATCHED
from controller.queue.event_queue import Replaced
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from tests.unit.controller.allocating.test_bind_timeout import has_status, holders, is_bound
from tests.unit.controller.allocator.build import claim, device, pool
from tests.unit.controller.world import (
    FAIRNESS,
    PATIENCE,
    QUIET,
    RETRY,
    World,
    pod,
    unallocated,
)

OURS, KUEUES = {"name": SCHEDULING_GATE}, {"name": "kueue.x-k8s.io/admission"}


def group(name: str, min_count: int = 0) -> Object:
    """A PodGroup; a gang if so many pods must be bound together."""
    policy: Object = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {"schedulingPolicy": policy},
    }


def cards(count: int) -> World:
    return World(pool("a", [device("whole", bus) for bus in range(count)]))


def with_group(card_count: int, min_count: int = 0) -> World:
    """So many cards on a node, and the group `g`."""
    world = cards(card_count)
    world.put(POD_GROUPS, group("g", min_count))
    return world


def put(world: World, name: str, of: str, *gates: Object, with_claim: bool = True) -> None:
    """A member that wants a card."""
    if with_claim:
        world.put(RESOURCE_CLAIMS, claim(f"c-{name}"))
    member = member_of(of, name, *gates)
    member["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{len(world.api.live):02d}Z"
    world.put(PODS, member)
    world.run_until_idle()


def member_of(group_name: str, name: str, *gates: Object) -> Object:
    group_ref = {"podGroupName": group_name}
    return pod(name, f"c-{name}", schedulingGates=list(gates), schedulingGroup=group_ref)


def gated(world: World) -> list[str]:
    """The pods that still have our gate."""
    return sorted(
        name
        for (resource, name), found in world.api.live.items()
        if resource is PODS and OURS in (found["spec"].get("schedulingGates") or ())
    )


def test_one_served_member_of_a_basic_group_ends_the_gates_of_all() -> None:
    world = with_group(2)
    for name in "pqr":
        put(world, name, "g", OURS)
    assert holders(world) == ["p", "q"]
    assert gated(world) == []


def test_a_member_of_a_basic_group_that_comes_later_is_ungated_on_sight() -> None:
    world = with_group(1)
    put(world, "p", "g")
    put(world, "q", "g", OURS)
    assert holders(world) == ["p"]
    assert gated(world) == []


def test_before_one_is_served_the_gates_stay() -> None:
    world = World([])
    world.put(POD_GROUPS, group("g"))
    put(world, "p", "g", OURS)
    assert gated(world) == ["p"]


def test_nothing_is_allocated_for_a_gang_that_lacks_pods() -> None:
    world = with_group(2, 2)
    put(world, "p", "g")
    assert holders(world) == []
    assert world.recorder.notes == []  # its pods are made one after the other
    world.after(QUIET)
    assert world.recorder.notes[0] == (
        "Pod p: PodGroup default/g needs 2 pods that have their ResourceClaims, and 1 has them. "
        "Until then nothing is allocated, because kube-scheduler binds no pod of such a group"
    )
    put(world, "q", "g")
    assert holders(world) == ["p", "q"]


def test_nor_for_one_that_lacks_a_claim() -> None:
    world = with_group(2, 2)
    put(world, "p", "g")
    put(world, "q", "g", with_claim=False)
    assert holders(world) == []
    world.put(RESOURCE_CLAIMS, claim("c-q"))
    world.run_until_idle()
    assert holders(world) == ["p", "q"]


def test_members_without_claims_count() -> None:
    world = with_group(1, 2)
    put(world, "p", "g", OURS)
    world.put(PODS, pod("launcher", schedulingGroup={"podGroupName": "g"}))
    world.run_until_idle()
    assert holders(world) == ["p"]
    assert gated(world) == []


def test_the_gates_of_a_gang_are_lifted_together() -> None:
    world = with_group(1, 2)
    for name in "pqr":
        put(world, name, "g", OURS)
    assert holders(world) == ["p"]
    assert gated(world) == ["p", "q", "r"]
    world.put(POD_GROUPS, group("g", 1))  # minCount may change
    world.run_until_idle()
    assert gated(world) == []


def test_bound_members_count_and_later_ones_are_ungated_on_sight() -> None:
    world = with_group(2, 2)
    put(world, "p", "g", OURS)
    put(world, "q", "g", OURS)
    assert gated(world) == []
    is_bound(world, "p")
    is_bound(world, "q")
    put(world, "r", "g", OURS)
    assert gated(world) == []
    assert holders(world) == ["p", "q"]


def test_a_gate_of_somebody_else_holds_the_whole_group_back() -> None:
    world = with_group(2)
    put(world, "p", "g", KUEUES)
    put(world, "q", "g")
    assert holders(world) == []
    admitted = copy.deepcopy(world.api.live[PODS, "p"])
    admitted["spec"]["schedulingGates"] = []
    world.put(PODS, admitted)
    world.run_until_idle()
    assert holders(world) == ["p", "q"]


def test_nothing_is_allocated_before_the_group_exists() -> None:
    world = cards(1)
    put(world, "p", "g")
    assert holders(world) == []
    world.put(POD_GROUPS, group("g"))
    world.run_until_idle()
    assert holders(world) == ["p"]


def test_where_the_server_has_no_groups_a_pod_is_served_alone() -> None:
    world = World(
        pool("a", [device("whole", 0)]), listed=[each for each in WATCHED if each is not POD_GROUPS]
    )
    world.events.put(Replaced(POD_GROUPS, (), is_served=False))
    put(world, "p", "g", OURS)
    assert holders(world) == ["p"]
    assert gated(world) == []


def test_a_kind_that_is_served_later_is_noticed() -> None:
    world = cards(1)
    world.events.put(Replaced(POD_GROUPS, (), is_served=False))
    put(world, "p", "g")
    assert holders(world) == ["p"]
    world.events.put(Replaced(POD_GROUPS, ()))
    world.run_until_idle()
    world.after(QUIET)
    assert holders(world) == []  # its group does not exist
    world.put(POD_GROUPS, group("g"))
    world.after(QUIET)
    assert holders(world) == ["p"]


def test_a_gang_that_lost_a_pod_gives_its_cards_back() -> None:
    world = with_group(2, 2)
    put(world, "p", "g")
    put(world, "q", "g")
    world.remove(PODS, "q")
    world.run_until_idle()
    assert holders(world) == ["p"]  # the next one may come at once
    world.after(QUIET)
    assert holders(world) == []


def two_gangs(*gates: Object, draw: Callable[[], float]) -> World:
    """Each takes one of the two cards that both of its pods need: their namespaces come in turn."""
    world = World(pool("a", [device("whole", 0), device("whole", 1)]), draw=draw)
    for name in "gh":
        world.put(POD_GROUPS, group(name, 2) | in_namespace(name, name))
    for of, number in (("g", 1), ("h", 1), ("g", 2), ("h", 2)):
        name = f"{of}{number}"
        world.put(RESOURCE_CLAIMS, claim(f"c-{name}") | in_namespace(of, f"c-{name}"))
        world.put(PODS, member_of(of, name, *gates) | in_namespace(of, name))
    world.run_until_idle()
    assert [each[0] for each in holders(world)] == ["g", "h"]
    return world


def in_namespace(namespace: str, name: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"}}


def test_of_two_gangs_that_block_each_other_one_gets_the_cards() -> None:
    world = two_gangs(OURS, draw=lambda: 0.0)
    world.after(PATIENCE)
    assert holders(world) in (["g1", "g2"], ["h1", "h2"])
    assert len(gated(world)) == 2


def test_two_gangs_that_are_due_at_once_do_not_both_give_way() -> None:
    """Both would take half of the cards again, and two units meet only once."""
    world = two_gangs(OURS, draw=lambda: 0.0)
    world.pool.is_paused = True  # both are due before the first release is written
    world.after(PATIENCE)
    assert len(world.pool.submitted) == 1
    world.pool.resume()
    world.run_until_idle()
    assert holders(world) in (["g1", "g2"], ["h1", "h2"])


def test_nor_do_they_block_each_other_again_when_kube_scheduler_cleared_both() -> None:
    drawn = iter([0.0, 0.5])
    world = two_gangs(draw=lambda: next(drawn, 0.0))
    for name in holders(world):
        world.put(RESOURCE_CLAIMS, unallocated(world.claim(f"c-{name}")))
    world.run_until_idle()
    world.after(QUIET)
    assert holders(world) == []
    world.after(0.9 * QUIET)
    assert holders(world) in (["g1", "g2"], ["h1", "h2"])


def test_the_clock_of_a_gang_runs_for_all_of_it() -> None:
    """The second pod of the gang was served later than the first one."""
    world = with_group(2, 3)
    for name in "pqr":
        put(world, name, "g", OURS)
    put(world, "alone", "")
    assert holders(world) == ["p", "q"]
    world.recorder.notes.clear()
    world.after(PATIENCE)
    assert holders(world) == ["alone"]
    released = [each for each in world.recorder.notes if "was not bound" in each]
    assert len(released) == 4  # of both pods, and of their claims
    world.after(RETRY)
    assert holders(world) == ["alone", "p"] or holders(world) == ["alone", "q"]


def test_a_gang_that_nobody_waits_for_is_released_in_minutes() -> None:
    world = with_group(1, 2)
    for name in "pq":
        put(world, name, "g", OURS)
    world.after(UNUSED_LIMIT - 0.1)
    assert holders(world) == ["p"]
    world.after(0.1)
    assert holders(world) == []


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_gang_whose_allocations_kube_scheduler_cleared_pauses(*, is_complete: bool) -> None:
    """It does that for all members. Of a complete gang the nodes are avoided for a while."""
    world = World([*pool("a", [device("whole", 0), device("whole", 1)][: 2 if is_complete else 1])])
    world.put(POD_GROUPS, group("g", 2))
    for name in "pq":
        put(world, name, "g")
    for name in holders(world):
        world.put(RESOURCE_CLAIMS, unallocated(world.claim(f"c-{name}")))
    world.run_until_idle()
    assert holders(world) == []
    world.after(2 * QUIET)
    assert holders(world) == ([] if is_complete else ["p"])
    world.after(RETRY)
    assert holders(world) == (["p", "q"] if is_complete else ["p"])


def test_a_nominated_member_keeps_the_cards_of_its_gang() -> None:
    world = with_group(2, 2)
    for name in "pq":
        put(world, name, "g")
    put(world, "alone", "")
    has_status(world, "p", nominatedNodeName="a")
    world.after(PATIENCE)
    assert holders(world) == ["p", "q"]


def shared_claim(world: World, *names: str) -> None:
    """Members of the group g that all use the claim c-both."""
    world.put(RESOURCE_CLAIMS, claim("c-both"))
    for name in names:
        member = member_of("g", name)
        member["spec"]["resourceClaims"][0]["resourceClaimName"] = "c-both"
        world.put(PODS, member)
    world.run_until_idle()


def test_a_claim_of_all_members_is_released_when_the_group_is_gone() -> None:
    world = with_group(1, 2)
    shared_claim(world, "p", "q")
    assert holders(world) == ["both"]
    world.remove(POD_GROUPS, "g")
    world.run_until_idle()
    world.after(QUIET)
    assert holders(world) == []


def test_a_member_that_is_deleted_takes_no_claim_from_the_others() -> None:
    world = with_group(1, 2)
    shared_claim(world, "p", "q", "r")
    deleted = copy.deepcopy(world.api.live[PODS, "r"])
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.put(PODS, deleted)
    world.run_until_idle()
    world.after(QUIET)
    assert holders(world) == ["both"]


def test_a_member_that_lacks_a_claim_holds_the_whole_group_back() -> None:
    """Kube-scheduler tries none of a group while one of its pods cannot be tried."""
    world = with_group(3, 2)
    for name in "pq":
        put(world, name, "g")
    put(world, "r", "g", with_claim=False)
    world.after(QUIET)
    assert holders(world) == []
    world.put(RESOURCE_CLAIMS, claim("c-r"))
    world.after(2 * QUIET)
    assert holders(world) == ["p", "q", "r"]


@pytest.mark.parametrize("min_count", [0, 2])
def test_a_refused_member_keeps_no_gate(min_count: int) -> None:
    """The quorum is there without it."""
    world = with_group(3, min_count)
    world.put(RESOURCE_CLAIMS, claim("c-bad"))
    bad = member_of("g", "bad", OURS)
    bad["spec"]["resourceClaims"].append({"name": "again", "resourceClaimName": "c-bad"})
    world.put(PODS, bad)
    for name in "pq":
        put(world, name, "g", OURS)
    assert holders(world) == ["p", "q"]
    assert gated(world) == []


def test_a_refused_member_is_none_of_the_quorum() -> None:
    world = with_group(2, 2)
    world.put(RESOURCE_CLAIMS, claim("c-bad"))
    bad = member_of("g", "bad")
    bad["spec"]["resourceClaims"].append({"name": "again", "resourceClaimName": "c-bad"})
    world.put(PODS, bad)
    put(world, "p", "g")
    assert holders(world) == []


def test_a_starving_member_gives_its_node_up_when_its_group_falls_apart() -> None:
    world = with_group(2, 2)
    put(world, "held", "")
    is_bound(world, "held")
    for name in "pq":
        wanted = claim(f"c-{name}")
        wanted["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
        world.put(RESOURCE_CLAIMS, wanted)
        world.put(PODS, member_of("g", name))
    world.run_until_idle()
    world.after(FAIRNESS)
    put(world, "small", "")
    assert holders(world) == ["held"]  # the node is reserved
    world.remove(PODS, "q")
    world.run_until_idle()
    assert holders(world) == ["held", "small"]


def test_nodes_of_a_group_that_fell_apart_are_not_avoided() -> None:
    world = with_group(2, 2)
    for name in "pq":
        put(world, name, "g")
    put(world, "r", "g", KUEUES)
    world.after(QUIET)
    assert holders(world) == []
    world.remove(PODS, "r")
    world.run_until_idle()
    world.after(QUIET)
    assert holders(world) == ["p", "q"]


def test_an_event_of_a_bound_member_does_not_end_the_pause_of_the_others() -> None:
    world = with_group(2, 1)
    put(world, "p", "g")
    is_bound(world, "p")
    put(world, "late", "g")
    world.after(UNUSED_LIMIT)
    assert holders(world) == ["p"]
    has_status(world, "p", phase="Running")
    world.after(2 * QUIET)
    assert holders(world) == ["p"]


def test_a_gang_that_is_half_served_says_so() -> None:
    world = with_group(1, 2)
    for name in "pq":
        put(world, name, "g", OURS)
    world.after(UNUSED_LIMIT)
    assert world.recorder.notes[-1].endswith(
        "was not bound, because only 1 of the 2 pods that PodGroup default/g needs had devices. "
        "Nothing is allocated for its group in the next 60 s"
    )
