"""Claims that were prepared for another pod, which the kubelet leaves out of a call."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from dra_driver.model.errors import GcuError
from tests.unit.node.turns import Moments, Turns
from tests.unit.node.world import CARDS, World, claim, pod, result

PODS = ("first", "second")


@pytest.fixture
def world(tmp_path: Any) -> World:
    return World(tmp_path)


def prepare(world: World, made: dict[str, Any]) -> str:
    """The error of the claim, in a call of its own; empty where it was prepared."""
    agent = world.start()
    ref = world.api.add(made)
    world.api.reads.clear()
    answer = agent.preparer.prepare([ref])[ref.uid]
    return str(answer) if isinstance(answer, GcuError) else ""


def sees(world: World, name: str) -> Any:
    [hold] = world.start().journal.snapshot().claims[f"uid-{name}"].devices
    return hold.visible_cards


def share(world: World, *containers: tuple[str, ...]) -> None:
    """Claim `shared` is prepared for the first pod, and the second one uses it and `own`."""
    assert prepare(world, claim("shared", result(0), pods=("first",))) == ""
    world.api.add(claim("shared", result(0), pods=PODS))
    world.api.pods["team", "first"] = pod({"x": "shared"}, ("x",), name="first")
    world.api.pods["team", "second"] = pod({"x": "shared", "y": "own"}, *containers, name="second")


@pytest.mark.parametrize("made_for", ["", "second"], ids=["by hand", "from a template"])
def test_no_container_has_a_shared_claim_beside_one_of_its_own(world: World, made_for: str) -> None:
    share(world, ("x", "y"))
    error = prepare(world, claim("own", result(1), pods=("second",), made_for=made_for))
    assert "also uses claim team/shared, which was prepared for a pod that combines it" in error
    assert "use the same claims together in every pod that shares one of them" in error
    assert list(world.files()) == ["gcu.enflame.com-claim-uid-shared.json"]


def test_containers_of_one_pod_share_a_claim_and_have_one(world: World) -> None:
    share(world, ("x",), ("y",))
    assert prepare(world, claim("own", result(1), pods=("second",))) == ""
    assert sees(world, "own") == CARDS[1:2]


def test_containers_that_share_some_of_their_claims_are_refused(world: World) -> None:
    share(world, ("x", "y"), ("x",))
    error = prepare(world, claim("own", result(1), pods=("second",)))
    assert "containers 'c0' and 'c1' of pod team/second share some GCU requests" in error


def test_the_pod_is_read_beside_a_claim_that_pods_can_share(world: World) -> None:
    share(world, ("x", "y"))
    assert prepare(world, claim("third", result(2), pods=("third",))) == ""
    assert world.api.reads == ["claim third", "pod third"]
    assert sees(world, "third") == CARDS[2:3]


def test_nothing_more_is_read_beside_claims_that_were_made_for_other_pods(world: World) -> None:
    for number in range(3):
        made = claim(f"c{number}", result(number), pods=(f"p{number}",), made_for=f"p{number}")
        assert prepare(world, made) == ""
        assert world.api.reads == [f"claim c{number}"]


def test_a_claim_of_the_same_pod_that_was_prepared_before_counts(world: World) -> None:
    """As after a call that prepared one claim and failed for the other."""
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x",), ("y",))
    assert prepare(world, claim("a", result(0), made_for="pod")) == ""
    assert prepare(world, claim("b", result(1), made_for="pod")) == ""
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b", "z": "c"}, ("x", "z"), ("y",))
    assert "also uses claim team/a" in prepare(world, claim("c", result(2), made_for="pod"))


def test_a_claim_that_no_pod_can_use_any_more_stands_alone(world: World) -> None:
    share(world, ("x", "y"))
    del world.api.pods["team", "second"]
    assert prepare(world, claim("own", result(1), pods=PODS[1:])) == ""
    assert sees(world, "own") == CARDS[1:2]


def test_pods_that_use_a_new_claim_otherwise_are_refused(world: World) -> None:
    """The kubelet does not say for which pod it asks, and asks once."""
    share(world, ("x",), ("y",))
    world.api.pods["team", "first"] = pod({"y": "own", "z": "more"}, ("y", "z"), name="first")
    assert prepare(world, claim("more", result(2), pods=PODS[:1])) == ""
    error = prepare(world, claim("own", result(1), pods=PODS))
    assert "also uses claim team/more" in error


@pytest.mark.parametrize("seed", range(25))
def test_two_pods_that_ask_for_a_shared_claim_at_the_same_moment(world: World, seed: int) -> None:
    """Whoever comes first decides which cards it names, and the other's own claim is refused."""
    turns = Turns(Random(seed))
    world.take = turns.take_lock
    agent = world.start(Moments(turns))
    world.api.pods["team", "first"] = pod({"x": "shared"}, ("x",), name="first")
    world.api.pods["team", "second"] = pod({"x": "shared", "y": "own"}, ("x", "y"), name="second")
    shared = world.api.add(claim("shared", result(0), pods=PODS))
    own = world.api.add(claim("own", result(1), pods=PODS[1:]))
    calls = ([shared], [shared, own])
    turns.play([partial(agent.preparer.prepare, refs) for refs in calls])
    holdings = agent.journal.snapshot().claims
    [hold] = holdings[shared.uid].devices
    assert (own.uid in holdings) == (hold.visible_cards == CARDS[:2])
