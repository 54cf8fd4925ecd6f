"""How many pods have cards without a claim, by node and namespace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from controller import metric_specs
from controller.agents import RunningAgents
from controller.app import Controller
from controller.extender.extender import Extender
from controller.settings import ControllerSettings
from controller.unclaimed_pods import UnclaimedPods
from dra_driver.kube.api import Api, Change
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from tests.unit.controller.fake_api import FakeApi
from tests.unit.controller.informers.decoded import decoded
from tests.unit.controller.test_slice_cleaner import agent

ALL = {"name": "ENFLAME_VISIBLE_DEVICES", "value": "all"}


def thief(name: str, node: str = "a", phase: str = "Running", **spec: Any) -> Object:
    return {
        "metadata": {"namespace": "team", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "env": [ALL]}]} | spec,
        "status": {"phase": phase},
    }


def of_class(pod: Object, name: str) -> Object:
    """The pod without variables, in that RuntimeClass."""
    spec = {"nodeName": pod["spec"]["nodeName"], "containers": [{"name": "main"}]}
    return pod | {"spec": spec | {"runtimeClassName": name}}


def counted(found: UnclaimedPods) -> Mapping[tuple[str, str], float]:
    [family] = found.collect()
    return {(each.labels["node"], each.labels["namespace"]): each.value for each in family.samples}


def made(*agents: Object) -> UnclaimedPods:
    running = RunningAgents()
    running.on_replace(agents)
    return UnclaimedPods(running)


def test_pods_come_and_go() -> None:
    found = made(agent("a"), agent("b"))
    found.on_replace([decoded(PODS, thief(name)) for name in ("p", "q")])
    assert counted(found) == {("a", "team"): 2}
    found.on_event(Change.ADDED, decoded(PODS, thief("r", "b")))
    found.on_event(Change.DELETED, decoded(PODS, thief("p")))
    assert counted(found) == {("a", "team"): 1, ("b", "team"): 1}
    found.on_event(Change.MODIFIED, decoded(PODS, thief("q", phase="Succeeded")))
    assert counted(found) == {("b", "team"): 1}
    found.on_replace([])
    assert counted(found) == {}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(thief("p", "without-an-agent"), id="no cards there"),
        pytest.param(thief("p", ""), id="not bound"),
        pytest.param(
            thief("p", resourceClaims=[{"name": "c", "resourceClaimName": "c"}]), id="a claim"
        ),
        pytest.param(thief("agent of a"), id="the agent itself"),
        pytest.param(of_class(thief("p"), "kata"), id="another RuntimeClass"),
    ],
)
def test_pods_that_do_not_count(pod: Object) -> None:
    found = made(agent("a"))
    found.on_replace([decoded(PODS, pod)])
    assert counted(found) == {}


def test_the_agents_runtime_class_is_the_vendors() -> None:
    running = RunningAgents()
    found = UnclaimedPods(running)
    found.on_replace([decoded(PODS, of_class(thief("p"), "enflame"))])
    running.on_replace([of_class(agent("a"), "enflame")])
    assert counted(found) == {("a", "team"): 1}


def test_a_pod_that_cannot_be_read_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found = made(agent("a"))
    found.on_replace([thief("odd", containers=[None]), thief("p")])
    assert counted(found) == {("a", "team"): 1}
    assert "pod odd cannot be read" in caplog.text


@pytest.mark.parametrize("program", [Controller, Extender])
def test_either_program_counts(
    program: type[Controller | Extender],
) -> None:
    file = Path("not-read-here")
    settings = ControllerSettings(
        extender_certificate=file, extender_key=file, extender_client_authority=file
    )
    registry = CollectorRegistry()
    made = program(settings, cast("Api", FakeApi()), registry, identity="one")
    of_agents = made._housekeeping._parts["the watch of agents"]
    assert isinstance(of_agents, Reflector)
    of_agents.handler.on_replace([agent("a")])
    [watch] = [each for each in made._reflectors if each.resource is PODS]
    watch.handler.on_event(Change.ADDED, decoded(PODS, thief("p")))
    labels = {"node": "a", "namespace": "team"}
    assert registry.get_sample_value(metric_specs.PODS_WITHOUT_CLAIM.name, labels) == 1
