"""What the chart's accounts may write into claims' status where the API server itself does not ask:
before Kubernetes 1.36, and on a server whose feature gate is off, as it is while the newest one
plays 1.34."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.attempts import Stage, is_refused, staged
from tests.control_plane.driver import Driver
from tests.control_plane.objects import claim

pytestmark = pytest.mark.control_plane

OTHERS = {"driver": "gpu.example.com", "pool": "any", "device": "any"}
ENTRIES = r"on node '.*' may write entries of status\.devices of the driver"
REST = "writes status.devices of a claim, and nothing else of its status"
RESERVED = [{"resource": "pods", "name": "pod", "uid": "1"}]


@pytest.fixture(scope="module")
def agent(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Its claim `mixed` has devices of its own node and of another driver."""
    with staged(control_plane, api, driver, tmp_path_factory.mktemp("agent"), "agent") as stage:
        made = api.create(RESOURCE_CLAIMS, claim("mixed", stage.namespace))
        results = [{"request": "gcu", **each} for each in (ours(stage.own), OTHERS)]
        made["status"] = {"allocation": {"devices": {"results": results}}, "devices": [OTHERS]}
        api.replace(RESOURCE_CLAIMS, made, subresource="status")
        numbers = count(1)

        def tried() -> object:
            return stage.tell(stage.other, index=next(numbers))

        wait_until(partial(is_refused, tried), PATIENCE, "the policy to be heeded")
        yield stage


def ours(node: str) -> Object:
    return {"driver": DRIVER, "pool": f"{DRIVER}/{node}", "device": "whole-0000-0d-00-0"}


def on(node: str) -> Object:
    return {"devices": {"results": [{"request": "gcu", **ours(node)}]}}


Attempt = Callable[[Stage], object]
REFUSED: dict[str, tuple[Attempt, str]] = {
    "allocate a claim": (lambda s: s.patch_status("free", {"allocation": on(s.own)}), REST),
    "release a claim of its own node": (
        lambda s: s.patch_status(s.own, {"allocation": None}),
        REST,
    ),
    "reserve a claim of its own node": (
        lambda s: s.patch_status(s.own, {"reservedFor": RESERVED}),
        REST,
    ),
    "write into a claim of another node": (lambda s: s.tell(s.other), ENTRIES),
    "write another driver's entry": (
        lambda s: s.patch_status("mixed", {"devices": [{**OTHERS, "data": {"index": 1}}]}),
        ENTRIES,
    ),
    "take another driver's entry away": (
        lambda s: s.patch_status("mixed", {"devices": []}),
        ENTRIES,
    ),
}


@pytest.mark.parametrize(("attempt", "words"), REFUSED.values(), ids=REFUSED)
def test_the_agents_token_does_not(agent: Stage, attempt: Attempt, words: str) -> None:
    with pytest.raises(KubeError, match=words):
        attempt(agent)


def test_the_agent_writes_its_entries_in_claims_of_its_node(agent: Stage) -> None:
    agent.tell(agent.own, index=7)
    [entry] = agent.claim(agent.own)["status"]["devices"]
    assert entry["data"] == {"index": 7}
    agent.patch_status("mixed", {"devices": [OTHERS, ours(agent.own)]})
    written = agent.claim("mixed")["status"]["devices"]
    assert [each["driver"] for each in written] == [OTHERS["driver"], DRIVER]


def test_a_token_that_is_bound_to_no_node_writes_nothing(
    agent: Stage, driver: Driver, tmp_path: Path
) -> None:
    kubeconfig = driver.kubeconfig("agent", tmp_path / "kubeconfig")
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    with pytest.raises(KubeError, match="on node '' may write"):
        Stage(client, agent.namespace, "", agent.own).tell(agent.own, index=8)
    client.close()


def test_the_controllers_token_writes_no_entries(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path: Path
) -> None:
    with staged(control_plane, api, driver, tmp_path, "controller") as stage:
        tried = partial(stage.replace_metadata, stage.own, labels={"tried": "1"})
        wait_until(partial(is_refused, tried), PATIENCE, "the policy to be heeded")
        with pytest.raises(KubeError, match="changes neither reservedFor nor devices"):
            stage.replace_status(stage.own, devices=[ours(stage.own)])
