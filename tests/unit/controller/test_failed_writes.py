"""Writes that fail or are late, and servers that answer something else."""

from __future__ import annotations

import copy

from dra_driver.kube.errors import Conflict, Forbidden, TooManyRequests, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import FINALIZER
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.world import World, pod


def test_a_conflict_reads_the_claim_again_and_tries_again() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c"))
    changed = copy.deepcopy(claim("c"))
    changed["metadata"]["labels"] = {"changed": "meanwhile"}
    world.put_unseen(RESOURCE_CLAIMS, changed)
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == ["c"]
    assert world.after(1.0) == ["c", "c status"]


def test_what_another_allocator_wrote_first_is_no_allocation_of_ours() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.api.write_errors = [Conflict("changed", status=409)]
    theirs = allocated("c", "a", "whole-0000-00-00-0")
    theirs["metadata"]["managedFields"] = written_by("kube-scheduler")
    world.api.before_error = lambda: world.put_unseen(RESOURCE_CLAIMS, theirs)
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert world.node_of("c") == "a"
    assert world.metric("gcu_controller_allocations_total") == 0


def test_a_refusing_server_is_called_ever_more_rarely() -> None:
    world = World()
    world.ask("p", "c")
    world.api.write_errors = [Unavailable("no answer")] * 1000
    world.run_until_idle()
    for _ in range(600):
        world.after(1.0)
    assert len(world.api.writes) < 40


def test_a_server_that_asks_for_patience_gets_it() -> None:
    world = World()
    world.ask("p", "c")
    world.api.write_errors = [TooManyRequests("later", retry_after=60.0)]
    assert world.run_until_idle() == ["c"]
    assert world.after(59.0) == []
    assert world.after(1.0) == ["c", "c status"]


def test_what_the_server_sends_and_nobody_understands_ends_no_thread() -> None:
    """Protobuf, say, where a proxy answers instead of the server."""
    world = World()
    world.ask("p", "c")
    world.api.write_errors = [InvalidValue("the API server sent no protobuf")]
    assert world.run_until_idle() == ["c"]
    assert world.after(0.1) == ["c", "c status"]


def test_a_webhook_that_answers_with_conflicts_is_called_ever_more_rarely() -> None:
    """What became of an allocation that the server did not answer is found out by a write."""
    world = World()
    protected = claim("c")
    protected["metadata"]["finalizers"] = [FINALIZER]
    world.put(RESOURCE_CLAIMS, protected)
    world.put(PODS, pod("p", "c"))
    denied = Conflict("an admission webhook denied the request", status=409)
    world.api.write_errors = [Unavailable("no answer"), *[denied] * 1000]
    for _ in range(600):
        world.after(1.0)
    assert world.api.writes[:2] == ["c status", "c"]
    assert len(world.api.writes) < 40
    world.api.write_errors = []
    world.after(60.0)
    assert world.node_of("c") == "a"


def test_nothing_is_planned_at_rest() -> None:
    world = World()
    world.ask("p", "c")
    world.run_until_idle()
    bound = pod("p", "c", nodeName="a")
    world.put(PODS, bound)
    world.after(3600.0)
    assert world.queue.next_wakeup() is None


def test_a_claim_that_was_deleted_before_the_answer_to_its_write_holds_nothing() -> None:
    """The last write of its pod took long; meanwhile the pod and its claims were deleted."""
    world = World(pool("a", [device("whole", 0)]))
    made = claim("made")
    made["metadata"]["ownerReferences"] = [{"kind": "Pod", "controller": True, "uid": "uid-p"}]
    world.put(RESOURCE_CLAIMS, made)
    world.put(PODS, pod("p", "made"))
    world.pool.is_paused = True
    world.run_until_idle()
    world.pool.resume()
    late = world.events.take(0)
    assert late
    world.remove(PODS, "p")
    world.remove(RESOURCE_CLAIMS, "made")
    world.put(RESOURCE_CLAIMS, claim("c"))
    for news in late:
        world.events.put(news)
    world.put(PODS, pod("q", "c"))
    world.run_until_idle()
    assert world.node_of("c") == "a"


def test_pods_that_share_a_claim_do_not_alternate_in_refused_writes() -> None:
    """Each failure would bring up the other pod, at once and without end."""
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c"))
    for name in "pq":
        world.put(PODS, pod(name, "c"))
    world.api.write_errors = [Forbidden("a policy says no", status=403)] * 1000
    tries = len(world.run_until_idle())
    for _ in range(120):
        tries += len(world.after(0.5))
    assert 1 <= tries <= 24  # in a minute, of both
    world.api.write_errors = []
    world.after(60.0)
    assert world.node_of("c") == "a"


def test_what_a_pod_may_not_be_given_goes_to_one_that_waits() -> None:
    """It looked when the card seemed to be taken."""
    world = World(pool("a", [device("whole", 0)]))
    world.pool.is_paused = True
    for name in "cd":
        world.ask(f"of-{name}", name)
        world.run_until_idle()
    world.api.write_errors = [Forbidden("a policy says no", status=403)]
    world.api.before_error = lambda: world.remove(PODS, "of-c")
    world.pool.resume()
    world.run_until_idle()
    world.after(30.0)
    assert world.node_of("d") == "a"
