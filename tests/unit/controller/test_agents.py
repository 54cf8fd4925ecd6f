"""On which nodes an agent runs."""

from __future__ import annotations

import pytest

from controller.agents import AGENT_POD, RunningAgents
from dra_driver.kube.api import Change
from dra_driver.kube.decode import Typed
from dra_driver.kube.encode import encode
from dra_driver.model.claims.claim import Object
from tests.unit.controller.test_slice_cleaner import agent


def decoded(pod: Object) -> Object:
    found: Object = Typed(AGENT_POD).decode(encode(pod))
    return found


def whole(node: str, *, running: bool = True) -> Object:
    """With fields that nobody reads here."""
    found = agent(node, running=running)
    return found | {
        "metadata": found["metadata"] | {"name": node, "labels": {"a": "b"}},
        "spec": found["spec"] | {"containers": [{"name": "agent"}]},
        "status": found["status"] | {"phase": "Running"},
    }


def test_at_first_nothing_is_known() -> None:
    assert not RunningAgents().is_synced


def test_what_is_decoded_says_where_agents_run() -> None:
    agents = RunningAgents()
    agents.on_replace([decoded(whole("a")), decoded(whole("b", running=False))])
    assert agents.is_synced
    assert agents.nodes() == {"a"}
    agents.on_event(Change.MODIFIED, decoded(whole("b")))
    agents.on_event(Change.DELETED, decoded(whole("a")))
    assert agents.nodes() == {"b"}
    assert "containers" not in decoded(whole("a"))["spec"]


def test_a_pod_that_has_no_status_yet() -> None:
    agents = RunningAgents()
    agents.on_replace([decoded({"metadata": {"uid": "u"}, "spec": {}})])
    assert agents.nodes() == set()


def metric(*pods: Object) -> dict[str, float]:
    """By node, after a list of these pods."""
    agents = RunningAgents()
    agents.on_replace([decoded(pod) for pod in pods])
    [family] = agents.collect()
    return {sample.labels["node"]: sample.value for sample in family.samples}


def unscheduled(node: str) -> Object:
    """As the DaemonSet makes a pod, before kube-scheduler has bound it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"metadata": {"uid": f"new on {node}"}, "spec": {"affinity": affinity}}


def with_condition(pod: Object, ready: str, *, was_ready: bool) -> Object:
    containers = [each | {"ready": was_ready} for each in pod["status"]["containerStatuses"]]
    conditions = [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": ready}]
    return pod | {"status": {"containerStatuses": containers, "conditions": conditions}}


@pytest.mark.parametrize(
    ("pods", "nodes"),
    [
        ([], []),
        ([whole("a")], []),
        ([whole("a", running=False)], ["a"]),
        ([unscheduled("a")], ["a"]),
        ([{"metadata": {"uid": "u"}, "spec": {}}], []),
        ([whole("a"), unscheduled("a")], []),
        ([whole("a"), whole("b", running=False), unscheduled("c")], ["b", "c"]),
        ([with_condition(whole("a"), "False", was_ready=True)], ["a"]),
        ([with_condition(whole("a"), "False", was_ready=False)], []),
        ([with_condition(whole("a"), "True", was_ready=True)], []),
    ],
    ids=[
        "no agents",
        "runs",
        "does not start",
        "finds no place",
        "for no node",
        "is being replaced",
        "several",
        "the kubelet is silent",
        "runs, and does not serve",
        "serves",
    ],
)
def test_nodes_that_should_have_an_agent_and_have_none(
    pods: list[Object], nodes: list[str]
) -> None:
    assert metric(*pods) == dict.fromkeys(nodes, 1.0)


def test_a_node_that_has_its_agent_again_is_not_told_any_more() -> None:
    agents = RunningAgents()
    agents.on_event(Change.ADDED, decoded(whole("a", running=False)))
    assert agents.nodes_without() == {"a"}
    agents.on_event(Change.MODIFIED, decoded(whole("a")))
    assert agents.nodes_without() == set()
    agents.on_event(Change.MODIFIED, decoded(whole("a", running=False)))
    agents.on_event(Change.DELETED, decoded(whole("a", running=False)))
    assert agents.nodes_without() == set(), "the DaemonSet wants none there"
