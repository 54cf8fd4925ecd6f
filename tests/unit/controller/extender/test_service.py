"""Calls from bytes to bytes, and what is said while nothing may be answered."""

from __future__ import annotations

import json
import threading
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry

from controller.allocator.packing.policy import Policy
from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.binder import Binder
from controller.extender.bypass import BypassReporter
from controller.extender.retry_queue import RetryQueue
from controller.extender.service import Metrics, Service
from controller.leaderelection.fence import NotLeader
from controller.own_pod import OwnPod
from dra_driver.kube.errors import Unavailable
from dra_driver.model.mode import Mode
from tests.unit.agent.recorder import ListRecorder
from tests.unit.controller.extender.api import PodApi
from tests.unit.controller.extender.build import SHARED, card, hold, node, of_workload, pod, view

SMALL, LARGE = pod("small", {SHARED: 2}), pod("large", {SHARED: 7})


class World:
    def __init__(self) -> None:
        lock, policy = threading.Lock(), Policy()
        self.problem: NotLeader | None = None
        self.registry = CollectorRegistry()
        self.api = PodApi(SMALL, LARGE)
        self.recorder = ListRecorder()
        api = self.api
        found = self.found = view(node("n", card(1)), node("m", card(1), card(2)))
        self.waiting = RetryQueue(api, fits=lambda *_: False, clock=lambda: 0.0, now_ns=lambda: 0)
        metrics = Metrics(self.registry)
        self.refusals = AdmissionBackoff(metrics.refused_by_node, lambda: 0.0)
        binder = Binder(api, found, lock, policy, clock=lambda: 0.0, now_ns=lambda: 0)
        self.service = Service(
            found,
            lock,
            policy,
            binder=binder,
            retry_queue=self.waiting,
            admission_backoff=self.refusals,
            metrics=metrics,
            bypass=BypassReporter(found, lock, OwnPod(api, self.recorder, namespace="d", name="c")),
            check=self.check,
        )

    def check(self) -> None:
        if self.problem:
            raise self.problem

    def call(self, verb: str, **body: object) -> Any:
        return json.loads(
            self.service.answers[f"/gcu.enflame.com/{verb}"](json.dumps(body).encode())
        )

    def calls(self, verb: str, outcome: str) -> float | None:
        labels = {"verb": verb, "outcome": outcome}
        return self.registry.get_sample_value("gcu_extender_calls_total", labels)


@pytest.fixture
def world() -> World:
    return World()


def test_filter_prioritize_and_bind(world: World) -> None:
    asked = {"Pod": SMALL, "NodeNames": ["n", "m"]}
    assert world.call("filter", **asked)["NodeNames"] == ["n", "m"]
    # The node with fewer free cards.
    scores = [{"Host": "n", "Score": 10}, {"Host": "m", "Score": 9}]
    assert world.call("prioritize", **asked) == scores
    bind = {"PodNamespace": "default", "PodName": "small", "PodUID": "uid-small", "Node": "n"}
    assert world.call("bind", **bind) == {"Error": ""}
    assert world.api.pod("small")["spec"]["nodeName"] == "n"
    assert world.calls("bind", "served") == 1
    assert len(world.waiting) == 0


def test_nobody_is_preempted_for_a_card(world: World) -> None:
    """kube-scheduler chooses victims by a node's counts, and ends them wherever nobody objects."""
    found = world.found
    found.put_node(node("full", card(1, Mode.SHARED, hold("low", 3)), card(2, Mode.WHOLE)))
    victims = {"Pods": [{"UID": "uid-low"}], "NumPDBViolations": 1}
    asked = {
        "Pod": pod("high", {SHARED: 4}),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"full": victims, "m": victims, "unknown": victims},
    }
    # On m it has its card, so what it lacks there is something else.
    assert world.call("preempt", **asked) == {"NodeNameToMetaVictims": {"m": victims}}
    world.refusals.record_rejection(of_workload("w", SMALL), "m")
    asked["Pod"] = of_workload("w", pod("high", {SHARED: 4}))
    assert world.call("preempt", **asked) == {"NodeNameToMetaVictims": {}}
    assert len(world.waiting) == 0


def test_a_node_that_needs_no_victims(world: World) -> None:
    """From Kubernetes 1.38 on kube-scheduler also names nodes where nobody must go."""
    world.found.put_node(node("full", card(1, Mode.SHARED, hold("low", 6))))
    found = world.call(
        "preempt", Pod=pod("high", {SHARED: 4}), NodeNameToMetaVictims={"full": {}, "m": None}
    )
    assert found == {"NodeNameToMetaVictims": {"m": {"Pods": []}}}


def test_a_node_that_did_not_admit_a_pod_is_no_place_for_the_next_one(world: World) -> None:
    world.refusals.record_rejection(of_workload("w", SMALL), "n")
    asked = {"Pod": of_workload("w", SMALL), "NodeNames": ["n", "m"]}
    found = world.call("filter", **asked)
    assert found["NodeNames"] == ["m"]
    assert "it did not admit default/small" in found["FailedAndUnresolvableNodes"]["n"]
    assert len(world.waiting) == 0
    assert world.call("filter", **asked | {"NodeNames": ["n"]})["NodeNames"] == []
    assert len(world.waiting) == 1


def test_a_pod_without_a_place_waits_with_the_reason(world: World) -> None:
    found = world.call("filter", Pod=LARGE, NodeNames=["n"])
    assert found["NodeNames"] == []
    assert "asks for 7 slices, no card has more than 6" in found["FailedAndUnresolvableNodes"]["n"]
    assert len(world.waiting) == 1


def test_nothing_is_answered_while_another_one_leads(world: World) -> None:
    world.problem = NotLeader("this replica does not hold the lease")
    asked = {"Pod": SMALL, "NodeNames": ["n"]}
    assert world.call("filter", **asked) == {"Error": "this replica does not hold the lease"}
    assert world.call("prioritize", **asked) == []
    # No result, to kube-scheduler: nobody is ended.
    preempt = {"Pod": SMALL, "NodeNameToMetaVictims": {"n": {"Pods": []}}}
    assert "NodeNameToMetaVictims" not in world.call("preempt", **preempt)
    assert world.calls("filter", "refused") == 1
    assert len(world.waiting) == 0


def test_errors_are_answers(world: World) -> None:
    assert "names no pod" in world.call("filter", NodeNames=[])["Error"]
    world.api.refusals["create"] = [Unavailable("the API server did not answer")]
    bind = {"PodNamespace": "default", "PodName": "small", "PodUID": "uid-small", "Node": "n"}
    assert world.call("bind", **bind) == {"Error": "the API server did not answer"}
    assert world.calls("bind", "failed") == 1


def test_a_fault_counts_as_a_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Binder, "bind", Mock(side_effect=KeyError("uid")))
    call = {"PodNamespace": "default", "PodName": "small", "PodUID": "uid-small", "Node": "n"}
    with pytest.raises(KeyError):
        world.call("bind", **call)
    assert (world.calls("bind", "failed"), world.calls("bind", "served")) == (1.0, None)


def test_a_call_of_another_configuration_is_reported(world: World) -> None:
    """With whole nodes, as kube-scheduler sends them without `nodeCacheCapable`."""
    assert world.call("filter", Pod=SMALL, Nodes={"items": []})["Error"]
    assert world.calls("filter", "failed") == 1
    assert [line.split()[0] for line in world.recorder.lines] == ["GcuExtenderMisconfigured"]
