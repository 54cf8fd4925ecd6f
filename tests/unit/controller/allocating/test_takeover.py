"""What a new leader does before its first grant."""

from __future__ import annotations

import json

import pytest

from controller.queue.event_queue import Replaced
from dra_driver.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    Unavailable,
    from_response,
)
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ANNOTATION_TERM
from tests.unit.controller.allocator.build import allocated, claim, device, pool, request
from tests.unit.controller.fake_api import FakeApi
from tests.unit.controller.world import World, pod


def term_of(world: World, name: str) -> str | None:
    found: str | None = world.claim(name)["metadata"].get("annotations", {}).get(ANNOTATION_TERM)
    return found


def following(slices: list[Object] | None = None) -> World:
    """A replica that follows."""
    world = World(slices)
    world.fence.close()
    return world


def configured(name: str) -> Object:
    found = claim(name)
    found["spec"]["devices"]["config"] = [{"opaque": {"driver": "d", "parameters": {"a": 1}}}]
    return found


MARKED = {
    "waiting": (claim("c"), ["c"]),
    "with opaque parameters": (configured("c"), ["c exactly"]),
    "allocated": (allocated("c", "a", "whole-0000-00-00-0"), []),
    "another driver's": (claim("c", [request(cls="gpu.example.com")]), []),
    "mixed": (claim("c", [request("x"), request("y", cls="gpu.example.com")]), []),
}


@pytest.mark.parametrize(("found", "writes"), MARKED.values(), ids=MARKED)
def test_unallocated_claims_of_ours_get_the_term(found: Object, writes: list[str]) -> None:
    world = following()
    world.put(RESOURCE_CLAIMS, found)
    world.lead("2")
    assert world.run_until_idle() == writes
    assert term_of(world, "c") == ("2" if writes else None)


def test_a_write_over_the_version_read_before_would_meet_a_conflict() -> None:
    world = following()
    before = world.put(RESOURCE_CLAIMS, claim("c"))["metadata"]["resourceVersion"]
    world.lead("2")
    world.run_until_idle()
    assert world.claim("c")["metadata"]["resourceVersion"] != before


def test_what_the_watch_has_not_delivered_is_known_before_the_first_allocation() -> None:
    world = following(pool("a", [device("whole", 0)]))
    world.ask("p", "c")
    world.put_unseen(RESOURCE_CLAIMS, allocated("x", "a", "whole-0000-00-00-0"))
    world.lead("2")
    world.run_until_idle()
    assert world.node_of("c") is None


def test_what_was_deleted_since_the_list_holds_nothing() -> None:
    """The watch tells while the list is still being read."""
    world = following(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("old", "a", "whole-0000-00-00-0"))
    world.ask("p", "c")
    world.api.after_list = lambda: world.remove(RESOURCE_CLAIMS, "old")
    world.lead("2")
    world.run_until_idle()
    assert world.node_of("c") == "a"


def test_each_term_begins_once() -> None:
    world = following()
    world.put(RESOURCE_CLAIMS, claim("c"))
    for term in ("2", "3"):
        world.lead(term)
        assert world.run_until_idle() == ["c"]
        assert world.run_until_idle() == []
        assert term_of(world, "c") == term


def test_a_conflict_reads_the_claim_and_marks_it_unless_it_is_allocated() -> None:
    world = following(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, claim("b"))
    world.ask("p", "c")
    world.api.write_errors = [Conflict("changed", status=409)]
    world.api.before_error = lambda: world.put_unseen(
        RESOURCE_CLAIMS, allocated("b", "a", "whole-0000-00-00-0")
    )
    world.lead("2")
    world.run_until_idle()
    assert world.node_of("c") is None
    assert term_of(world, "c") == "2"


@pytest.mark.parametrize(
    "error",
    [
        Invalid("metadata.annotations: too long", status=422),
        Forbidden("a policy of the namespace denied the request", status=403),
        KubeError("an admission webhook denied the request", status=400),
        from_response(
            "PUT /", 500, b'{"code": 500, "message": "etcdserver: request is too large"}'
        ),
    ],
    ids=str,
)
def test_a_claim_that_can_carry_no_term_blocks_no_other(error: KubeError) -> None:
    world = following()
    world.put(RESOURCE_CLAIMS, claim("full"))
    world.api.write_errors = [error]
    world.lead("2")
    world.run_until_idle()
    world.ask("p", "c")
    world.run_until_idle()
    assert world.node_of("c") == "a"


def test_a_conflict_with_nothing_is_a_refusal() -> None:
    """An admission webhook chooses what it answers: the claim is as it was read."""
    world = following()
    world.put(RESOURCE_CLAIMS, claim("full"))
    world.api.write_errors = [
        Conflict("an admission webhook denied the request", status=409)
    ] * 1000
    world.lead("2")
    assert world.run_until_idle() == ["full"]
    world.api.write_errors = []
    world.ask("p", "c")
    world.run_until_idle()
    assert world.node_of("c") == "a"


WITHOUT_WEBHOOK = {
    "away": 'Internal error occurred: failed calling webhook "v.team.example": no endpoints',
    "refuses": 'admission webhook "v.team.example" denied the request: not now',
}


class Webhooked(FakeApi):
    """Whatever is written of the claim `theirs` fails with that message."""

    message = "no webhook"

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        if body["metadata"]["name"] == "theirs":
            answer = json.dumps({"code": 500, "message": self.message}).encode()
            raise from_response("PUT /", 500, answer)
        return super().replace(resource, body, subresource=subresource)


def with_webhook(message: str) -> World:
    """A new leader, 58 s after its term began."""
    api = Webhooked()
    api.message = message
    world = World(api=api)
    world.fence.close()
    for name in ("theirs", "c"):
        world.put(RESOURCE_CLAIMS, claim(name))
    world.put(PODS, pod("p", "c"))
    world.lead("2")
    for _ in range(58):
        world.after(1.0)
    assert world.node_of("c") is None
    return world


@pytest.mark.parametrize("message", WITHOUT_WEBHOOK.values(), ids=WITHOUT_WEBHOOK)
def test_a_claim_whose_webhook_is_away_blocks_others_for_a_minute_only(message: str) -> None:
    """Of one namespace, for example."""
    world = with_webhook(message)
    for _ in range(30):
        world.after(1.0)
    assert world.node_of("c") == "a"


def test_a_server_that_fails_by_itself_is_waited_for() -> None:
    world = with_webhook("etcdserver: request timed out")
    world.after(3600.0)
    assert world.node_of("c") is None


@pytest.mark.parametrize("of", ["list", "read", "write"])
def test_nothing_is_granted_before_all_are_marked(of: str) -> None:
    world = following()
    world.ask("p", "c")
    if of == "list":
        world.api.list_errors = [Unavailable("no answer")]
    elif of == "read":
        world.put_unseen(RESOURCE_CLAIMS, claim("late"))
        world.api.read_errors = [Unavailable("no answer")]
    else:
        world.api.write_errors = [Unavailable("no answer")]
    world.lead("2")
    world.run_until_idle()
    assert world.node_of("c") is None
    world.after(1.0)
    assert world.node_of("c") == "a"
    assert term_of(world, "c") == "2"


MANY = 40_000


def test_of_many_claims_only_those_are_read_that_differ_from_the_cache() -> None:
    """No others are decoded whole."""
    world = following()
    held = allocated("x", "a", "whole-0000-00-00-0")
    for number in range(MANY):
        named = {"name": f"x{number}", "uid": f"uid-x{number}"}
        world.api.put(RESOURCE_CLAIMS, held | {"metadata": held["metadata"] | named})
    listed = [each for (kind, _), each in world.api.live.items() if kind is RESOURCE_CLAIMS]
    world.events.put(Replaced(RESOURCE_CLAIMS, listed))
    for name in ("known", "replaced"):
        world.put(RESOURCE_CLAIMS, claim(name))
    world.worker.run_once(0)
    # The watch has not delivered these:
    world.put_unseen(RESOURCE_CLAIMS, allocated("x7", "b", "whole-0000-00-00-0"))
    world.put_unseen(RESOURCE_CLAIMS, claim("new"))
    another = claim("replaced")
    another["metadata"]["uid"] = "another"
    world.put_unseen(RESOURCE_CLAIMS, another)
    world.api.lists.clear()
    world.lead("2")
    world.worker.run_once(0)
    assert world.api.lists == ["resourceclaims metadata"]
    differ = ["new", "replaced", "x7"]
    assert sorted(world.api.reads) == [f"resourceclaims {each}" for each in differ]
    assert sorted(world.api.writes) == ["known", "new", "replaced"]
    assert [term_of(world, each) for each in ("known", "new", "replaced")] == ["2"] * 3
