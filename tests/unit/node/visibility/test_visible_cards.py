"""What each device of a pod's claims must name; the rule itself is tested with the model."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.errors import GcuError
from dra_driver.model.pci import PciAddress
from tests.unit.node.world import CARDS, NODE, World, claim, pod, result


@pytest.fixture
def world(tmp_path: Any) -> World:
    return World(tmp_path)


def prepare(world: World, *claims: dict[str, Any]) -> dict[str, str]:
    """Errors by claim name; empty for a claim that was prepared."""
    agent = world.start()
    refs = [world.api.add(claim) for claim in claims]
    answers = agent.preparer.prepare(refs)
    assert sorted(answers) == sorted(ref.uid for ref in refs)
    return {
        ref.name: str(answers[ref.uid]) if isinstance(answers[ref.uid], GcuError) else ""
        for ref in refs
    }


def sees(world: World) -> dict[str, dict[str, tuple[PciAddress, ...]]]:
    """By claim name and request, the cards that its devices name."""
    agent = world.start()
    return {
        held.owner.uid.removeprefix("uid-"): {
            hold.request: hold.visible_cards for hold in held.devices
        }
        for held in agent.journal.snapshot().claims.values()
    }


def test_one_claim_of_one_request_needs_no_pod(world: World) -> None:
    assert prepare(world, claim("one", result(0), result(1))) == {"one": ""}
    assert world.api.reads == ["claim one"]
    assert sees(world) == {"one": {"gcu": CARDS[:2]}}


def test_two_claims_of_one_container_name_both(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x", "y"))
    assert prepare(world, claim("a", result(1)), claim("b", result(0))) == {"a": "", "b": ""}
    assert sees(world) == {"a": {"gcu": CARDS[:2]}, "b": {"gcu": CARDS[:2]}}


def test_a_claim_for_each_container_names_its_own(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x",), ("y",))
    prepare(world, claim("a", result(0)), claim("b", result(1)))
    assert sees(world) == {"a": {"gcu": CARDS[:1]}, "b": {"gcu": CARDS[1:2]}}


def test_requests_of_one_claim_in_two_containers(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a"}, ("x/left",), ("x/right",))
    prepare(world, claim("a", result(0, "left"), result(1, "right"), result(2, "right")))
    assert sees(world) == {"a": {"left": CARDS[:1], "right": CARDS[1:3]}}


def test_a_claim_made_from_a_template_is_found_by_the_pods_status(world: World) -> None:
    made = pod({"x": "", "y": "b"}, ("x", "y"))
    made["spec"]["resourceClaims"][0] = {"name": "x", "resourceClaimTemplateName": "t"}
    made["status"] = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "pod-x-7"}]}
    world.api.pods["team", "pod"] = made
    prepare(world, claim("pod-x-7", result(0)), claim("b", result(1)))
    assert sees(world) == {"pod-x-7": {"gcu": CARDS[:2]}, "b": {"gcu": CARDS[:2]}}


def of_group(made: dict[str, Any]) -> dict[str, Any]:
    """The claim as kube-scheduler reserves one of a PodGroup."""
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    return made | {"status": made["status"] | {"reservedFor": [user]}}


def test_a_claim_of_a_group_needs_no_pod(world: World) -> None:
    assert prepare(world, of_group(claim("one", result(0), result(1)))) == {"one": ""}
    assert sees(world) == {"one": {"gcu": CARDS[:2]}}


def test_a_claim_of_a_group_beside_a_claim_of_the_pod(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x",), ("y",))
    prepare(world, of_group(claim("a", result(0))), claim("b", result(1)))
    assert sees(world) == {"a": {"gcu": CARDS[:1]}, "b": {"gcu": CARDS[1:2]}}


def test_claims_of_a_group_alone_do_not_say_who_uses_them_together(world: World) -> None:
    errors = prepare(world, of_group(claim("a", result(0))), of_group(claim("b", result(1))))
    assert "let a pod use one claim of its PodGroup, with one request" in errors["a"]


def by_limits(claim: str, made: dict[str, Any], **requests: str) -> dict[str, Any]:
    """The pod with a claim that kube-scheduler made for its extended resources (1.36.3,
    ``extendeddynamicresources.go``): by container, the requests that it uses."""
    mappings = [
        {"containerName": container, "resourceName": "enflame.com/gcu", "requestName": request}
        for container, used in requests.items()
        for request in used.split()
    ]
    status = {"resourceClaimName": claim, "requestMappings": mappings}
    return {**made, "status": {"extendedResourceClaimStatus": status}}


FIRST, SECOND = "container-0-request-0", "container-1-request-0"


def test_containers_with_limits_that_kube_scheduler_serves_name_their_own_cards(
    world: World,
) -> None:
    """Neither the pod nor its containers name the claim."""
    made = pod({}, (), (), ())
    world.api.pods["team", "pod"] = by_limits("made", made, c0=FIRST, c1=SECOND)
    claims = claim("made", result(1, FIRST), result(0, SECOND), result(2, SECOND))
    assert prepare(world, claims) == {"made": ""}
    assert sees(world) == {"made": {FIRST: CARDS[1:2], SECOND: (CARDS[0], CARDS[2])}}


def test_a_container_has_a_limit_that_kube_scheduler_serves_and_a_claim(world: World) -> None:
    made = pod({"x": "own"}, ("x",), ())
    world.api.pods["team", "pod"] = by_limits("made", made, c0=FIRST, c1=SECOND)
    claims = claim("made", result(0, FIRST), result(1, SECOND)), claim("own", result(2))
    assert prepare(world, *claims) == {"made": "", "own": ""}
    both = CARDS[0], CARDS[2]
    assert sees(world) == {"made": {FIRST: both, SECOND: CARDS[1:2]}, "own": {"gcu": both}}


def test_an_init_container_reuses_the_card_of_a_limit(world: World) -> None:
    made = pod({}, ())
    made["spec"]["initContainers"] = [{"name": "before"}]
    world.api.pods["team", "pod"] = by_limits("made", made, before=SECOND, c0=SECOND)
    assert prepare(world, claim("made", result(0, SECOND), result(1, SECOND))) == {"made": ""}
    assert sees(world) == {"made": {SECOND: CARDS[:2]}}


def test_an_init_container_with_more_cards_than_the_next_one_is_refused(world: World) -> None:
    made = pod({}, ())
    made["spec"]["initContainers"] = [{"name": "before"}]
    world.api.pods["team", "pod"] = by_limits("made", made, before=f"{SECOND} {FIRST}", c0=SECOND)
    errors = prepare(world, claim("made", result(0, FIRST), result(1, SECOND)))
    assert "containers 'before' and 'c0' of pod team/pod share some" in errors["made"]


def test_the_pod_is_the_one_on_this_node_that_uses_all_claims(world: World) -> None:
    both = {"x": "a", "y": "b"}
    pods = ("elsewhere", "gone", "made-anew", "mine", "uses-one", "one-claim-only")
    made_anew = pod(both, ("x",), ("y",), name="made-anew")
    made_anew["metadata"]["uid"] = "another"
    world.api.pods = {
        ("team", "elsewhere"): pod(both, ("x",), ("y",), name="elsewhere", node="node-2"),
        ("team", "made-anew"): made_anew,
        ("team", "mine"): pod(both, ("x", "y"), name="mine"),
        ("team", "uses-one"): pod({"x": "a"}, ("x",), name="uses-one"),
        ("team", "one-claim-only"): pod({"x": "a"}, ("x",), name="one-claim-only"),
    }
    prepare(
        world, claim("a", result(0), pods=pods), claim("b", result(1), pods=(*pods[:5], "other"))
    )
    assert sees(world) == {"a": {"gcu": CARDS[:2]}, "b": {"gcu": CARDS[:2]}}
    assert "pod other" not in world.api.reads
    assert "pod one-claim-only" not in world.api.reads


def test_no_pod_is_an_error_of_every_claim(world: World) -> None:
    errors = prepare(world, claim("a", result(0), pods=()), claim("b", result(1)))
    assert errors["a"] == errors["b"]
    assert f"no pod on node {NODE} is known to use claims a, b of namespace team" in errors["a"]
    assert world.files() == {}


def test_sets_that_overlap_are_refused_for_every_claim(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x", "y"), ("x",))
    errors = prepare(world, claim("a", result(0)), claim("b", result(1)))
    assert errors["a"] == errors["b"]
    assert "containers 'c0' and 'c1' of pod team/pod share some" in errors["a"]


def test_a_failed_claim_holds_back_only_those_it_shares_a_container_with(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b", "z": "c"}, ("x", "y/gcu"), ("z",))
    errors = prepare(
        world,
        claim("a", result(0)),
        claim("b", result(1, pool="elsewhere")),
        claim("c", result(2)),
    )
    assert "it is in pool elsewhere" in errors["b"]
    assert "also uses one that is not ready: claim team/b" in errors["a"]
    assert errors["c"] == ""
    assert sees(world) == {"c": {"gcu": CARDS[2:3]}}


def test_a_second_try_finds_the_first_claim_prepared_for_both(world: World) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x", "y"))
    first, second = claim("a", result(0)), claim("b", result(1))
    world.machine.lost.add(CARDS[1])
    assert "lost" in prepare(world, first, second)["b"]
    world.machine.lost.clear()
    assert prepare(world, first, second) == {"a": "", "b": ""}
    assert sees(world) == {"a": {"gcu": CARDS[:2]}, "b": {"gcu": CARDS[:2]}}


@pytest.mark.parametrize("order", ["abcd", "dcba", "bcd"])
def test_a_claim_prepared_for_another_use_cannot_be_combined(world: World, order: str) -> None:
    """Claim a was prepared alone; c now shares a container with it, b one with c, d none."""
    claims = {
        "a": claim("a", result(0), pods=("first", "pod")),
        "b": claim("b", result(2, "other")),
        "c": claim("c", result(1, "left"), result(2, "right")),
        "d": claim("d", result(3)),
    }
    prepare(world, claims["a"])
    world.api.pods["team", "pod"] = pod(
        {"x": "a", "y": "c", "z": "b", "w": "d"}, ("x", "y/left"), ("z", "y/right"), ("w",)
    )
    errors = prepare(world, *(claims[name] for name in order))
    assert "also uses claim team/a, which was prepared for a pod that combines it" in errors["c"]
    assert "also uses one that is not ready" in errors["b"]
    assert errors["d"] == errors.get("a", "") == ""
