"""What is said of a kube-scheduler that does not call the extender, or in another way."""

from __future__ import annotations

import threading

from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.bypass import BypassReporter
from controller.own_pod import OwnPod
from dra_driver.kube.events import EventType
from dra_driver.model.claims.claim import Object
from tests.unit.agent.recorder import ListRecorder
from tests.unit.controller.extender.api import PodApi
from tests.unit.controller.extender.build import SHARED, address, card, node, pod, view


def bound(name: str, cards: str = "", phase: str = "Running") -> Object:
    return pod(name, {SHARED: 1}, on="n", cards=cards, phase=phase)


def reporter_of(found: AnnotatedCluster) -> tuple[BypassReporter, ListRecorder]:
    recorder = ListRecorder()
    own_pod = OwnPod(PodApi(), recorder, namespace="driver", name="controller-1")
    return BypassReporter(found, threading.Lock(), own_pod), recorder


def reporter(*pods: Object) -> tuple[BypassReporter, ListRecorder]:
    return reporter_of(view(node("n", card(1)), *pods))


def test_pods_that_it_has_placed_or_that_have_ended_are_well() -> None:
    made, recorder = reporter(bound("a", str(address(1))), bound("b", phase="Failed"))
    made.check()
    assert (made.count(), recorder.lines) == (0, [])


def test_pods_on_nodes_of_another_device_plugin_do_not_count() -> None:
    found = view({"metadata": {"name": "n"}}, bound("a"))
    made, recorder = reporter_of(found)
    made.check()
    assert (made.count(), recorder.lines) == (0, [])
    found.put_node(node("n", card(1)))
    assert made.count() == 1


def test_pods_placed_by_others_are_named_once() -> None:
    made, recorder = reporter(*(bound(name) for name in "dcba"))
    made.check()
    made.check()
    assert made.count() == 4
    [line] = recorder.lines
    assert line.startswith(
        "GcuExtenderBypassed pods with limits for GCUs were bound without this extender: default/a,"
        " default/b, default/c and 1 more."
    )
    [(regarding, kind, _)] = recorder.recorded
    assert regarding["metadata"]["name"] == "controller-1"
    assert kind is EventType.WARNING


def test_a_call_that_cannot_be_read_is_reported_once_for_a_verb() -> None:
    made, recorder = reporter()
    for error in ("no nodes", "no nodes", "no pod"):
        made.on_unreadable_call("filter", error)
    made.on_unreadable_call("bind", "no node")
    assert [line.partition(":")[0] for line in recorder.lines] == [
        f"GcuExtenderMisconfigured kube-scheduler calls {verb} of this extender in another way than"
        " the chart configures it"
        for verb in ("filter", "bind")
    ]
