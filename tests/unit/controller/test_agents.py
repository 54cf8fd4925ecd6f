"""On which nodes an agent runs."""

from __future__ import annotations

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
