"""An object on which the controller fails is not handled, and all others are served."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import pytest

from controller.queue.event_queue import Replaced, ResourceEvent
from controller.queue.scheduling_queue import QueuedKey
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ANNOTATION_TERM
from tests.unit.controller.allocator.build import allocated, claim, device, pool, request
from tests.unit.controller.allocator.decide import SHARED, names
from tests.unit.controller.world import FAIRNESS, World, node, pod

FAULTS, SET_ASIDE = "gcu_controller_faults_total", "gcu_controller_faulty_objects"


def bad_claim(name: str) -> Object:
    """With a count that is no number: the step of its pod fails."""
    asked = request()
    asked["exactly"]["count"] = "two"
    return claim(name, [asked])


def bad_pod() -> Object:
    """It cannot be put in line: its event fails."""
    return pod("poison", "c", priority="high")


def bad_node() -> Object:
    return node("poison") | {"spec": {"taints": [{"key": "x"}]}}


def bad_slice() -> Object:
    [published] = pool("a", [device("whole", 0)])
    broken = copy.deepcopy(published)
    broken["spec"]["devices"][0]["attributes"]["uuid"] = "not an attribute"
    broken["metadata"]["name"] = "poison"
    broken["spec"]["pool"]["name"] = "gcu.enflame.com/poison"
    broken["spec"]["nodeName"] = "poison"
    return broken


def serve(world: World, name: str) -> None:
    world.ask(f"of-{name}", name)
    world.run_until_idle()
    assert world.node_of(name) is not None


@pytest.mark.parametrize(
    ("resource", "bad", "good"),
    [
        pytest.param(PODS, bad_pod(), pod("poison", "c"), id="pod"),
        pytest.param(NODES, bad_node(), node("poison"), id="node"),
        pytest.param(RESOURCE_SLICES, bad_slice(), pool("poison", [])[0], id="slice"),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_an_event_that_fails_is_reported_and_the_next_is_handled(
    resource: Resource,
    bad: Object,
    good: Object,
    listed: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    stored = world.put_unseen(resource, bad)
    if listed:
        others = [each for (kind, _), each in world.api.live.items() if kind is resource]
        world.events.put(Replaced(resource, others))
    else:
        world.events.put(ResourceEvent(resource, Change.ADDED, stored))
    serve(world, "d")
    assert "poison is not handled" in caplog.text
    assert "Traceback" in caplog.text
    assert any(f"{resource.kind} poison: the controller failed" in e for e in world.recorder.notes)
    assert (world.metric(FAULTS), world.metric(SET_ASIDE)) == (1, 1)
    good = copy.deepcopy(good)
    good["metadata"]["name"] = "poison"
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(resource, good)
    world.run_until_idle()
    assert world.metric(SET_ASIDE) == 0
    if resource is PODS:
        assert world.node_of("c") is not None


@pytest.mark.parametrize("listed", [False, True])
def test_the_deletion_of_what_could_not_be_read_is_taken_in(listed: bool) -> None:
    world = World()
    world.put(PODS, bad_pod())
    world.put(NODES, bad_node())
    world.run_until_idle()
    assert world.metric(SET_ASIDE) == 2
    if listed:
        world.events.put(Replaced(PODS, []))
    else:
        world.remove(PODS, "poison")
    world.run_until_idle()
    assert world.metric(SET_ASIDE) == 1


def test_a_step_that_fails_is_left_alone_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, bad_claim("c"))
    world.put(PODS, pod("poison", "c"))
    world.run_until_idle()
    assert "the step for pod default/poison failed" in caplog.text
    assert any("Pod poison: the controller failed" in note for note in world.recorder.notes)
    assert (world.metric(FAULTS), world.metric(SET_ASIDE)) == (1, 1)
    for name in "de":
        serve(world, name)
        world.remove(PODS, f"of-{name}")
        world.remove(RESOURCE_CLAIMS, name)  # which wakes all that wait
        world.run_until_idle()
    assert world.metric(FAULTS) == 1, "it is left alone, whatever is freed"
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.run_until_idle()
    assert world.node_of("c") is None
    world.after(1.0)
    assert world.node_of("c") is not None
    assert world.metric(SET_ASIDE) == 0


def test_a_step_that_fails_is_tried_again_ever_later() -> None:
    """The fault may lie in what the step reads beside its object."""
    world = World()
    world.put(RESOURCE_CLAIMS, bad_claim("c"))
    world.put(PODS, pod("poison", "c"))
    world.run_until_idle()
    pauses = []
    for number in range(2, 12):
        pause = world.worker.next_wakeup()
        assert pause is not None
        pauses.append(pause)
        world.after(pause)
        assert world.metric(FAULTS) == number
    assert pauses == [*(2.0**n for n in range(9)), 300.0]


def test_a_step_that_fails_with_each_change_is_tried_less_and_less() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, bad_claim("c"))
    for number in range(600):
        world.put(PODS, pod("poison", "c", status={"nominatedNodeName": f"n{number}"}))
        world.after(1.0)
    assert 5 < world.metric(FAULTS) < 20


def test_no_node_stays_reserved_for_a_pod_that_is_set_aside() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("held", "a", "whole-0000-00-00-0"))
    world.ask("poison", "c")
    world.run_until_idle()
    world.after(FAIRNESS)  # the node is kept for it
    world.put(RESOURCE_CLAIMS, bad_claim("c"))
    world.remove(RESOURCE_CLAIMS, "held")
    serve(world, "d")


def test_claims_whose_write_fails_by_a_fault_stay_allocated_until_they_are_fenced() -> None:
    world = World(pool("a", [device("whole", 0)]))
    world.ask("p", "c")
    world.api.write_errors = [KeyError("metadata")]
    world.run_until_idle()
    world.ask("q", "d", priority=9)
    world.run_until_idle()
    assert world.node_of("d") is None
    world.after(1.0)
    assert world.claim("c")["metadata"]["annotations"][ANNOTATION_TERM] == "1.1"
    assert world.node_of("d") == "a"


def test_writes_that_fail_by_a_fault_are_tried_less_and_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What became of each is found out by a write that changes the claim."""
    world = World()
    failures = []
    replace = world.api.replace

    def fail(resource: Resource, body: Object, *, subresource: str = "") -> Object:
        if subresource:
            failures.append(world.time)
            raise KeyError("metadata")
        stored = replace(resource, {**body, "status": {}})  # of which this PUT writes nothing
        world.events.put(ResourceEvent(resource, Change.MODIFIED, stored))
        return stored

    monkeypatch.setattr(world.api, "replace", fail)
    world.ask("p", "c")
    for _ in range(1200):
        world.after(1.0)
    assert 2 < len(failures) < 20


def test_a_claim_that_cannot_be_read_does_not_block_a_term() -> None:
    world = World()
    world.fence.close()
    world.put(RESOURCE_CLAIMS, {**claim("poison"), "spec": {"devices": {"requests": ["gcu"]}}})
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.run_until_idle()
    world.lead("2")
    world.run_until_idle()
    assert world.claim("c")["metadata"]["annotations"][ANNOTATION_TERM] == "2"
    serve(world, "d")


def test_shares_beyond_all_that_a_device_has_hold_all_of_it() -> None:
    """The API takes 1e120 for a quantity."""
    world = World(pool("a", [device("shared", 0)]))
    [card] = names("shared", 0)
    world.put(RESOURCE_CLAIMS, allocated("c", "a", card, consumed={"slices": "1e120"}))
    world.put(RESOURCE_CLAIMS, claim("d", [request(cls=SHARED, capacity={"slices": "1"})]))
    world.put(PODS, pod("p", "d"))
    world.run_until_idle()
    assert world.node_of("d") is None
    world.remove(RESOURCE_CLAIMS, "c")
    world.run_until_idle()
    assert world.node_of("d") == "a"


@pytest.fixture
def running() -> World:
    world = World()
    world.worker.start()
    return world


def test_no_fault_ends_the_thread(running: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()
    pop: Callable[[float], QueuedKey | None] = running.queue.pop

    def fail_once(now: float) -> QueuedKey | None:
        if not failed.is_set():
            failed.set()
            raise KeyError("out of nowhere")
        return pop(now)

    monkeypatch.setattr(running.queue, "pop", fail_once)
    written = threading.Event()
    replace = running.api.replace

    def tell(*args: object, **kwargs: object) -> Object:
        written.set()
        return replace(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(running.api, "replace", tell)
    running.ask("p", "c")
    assert written.wait(60)
    assert failed.is_set()
    assert running.worker.is_alive()
    running.worker.stop(60)
