"""What the accounts of the chart may not do, tried with their tokens on a real server.

`test_rights` asks the server about many more verbs; here are those attempts that RBAC alone does
not decide about, or that would hurt most.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.effects import Effects
from dra_driver.model.names import SCHEDULING_GATE
from tests.cluster.cluster import Cluster
from tests.control_plane.attempts import Stage, staged
from tests.control_plane.driver import Driver
from tests.control_plane.objects import resource_slice, whole
from tests.control_plane.refusal_cases import AGENT, BOTH, CONTROLLER, POLICY, STATUS, Attempt, lift

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def stages(
    control_plane: Cluster,
    api: Client,
    driver: Driver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Stage]]:
    """By program; what is refused leaves no trace, so that all attempts share them."""
    folder = tmp_path_factory.mktemp("refusals")
    with (
        staged(control_plane, api, driver, folder, "agent") as agent,
        staged(control_plane, api, driver, folder, "controller") as controller,
    ):
        yield {"agent": agent, "controller": controller}


@pytest.mark.parametrize(("attempt", "refusal"), (BOTH | AGENT).values(), ids=BOTH | AGENT)
def test_the_agent_is_refused(stages: dict[str, Stage], attempt: Attempt, refusal: str) -> None:
    with pytest.raises(KubeError, match=refusal) as refused:
        attempt(stages["agent"])
    assert refused.value.status in {403, 422}


@pytest.mark.parametrize(
    ("attempt", "refusal"), (BOTH | CONTROLLER).values(), ids=BOTH | CONTROLLER
)
def test_the_controller_is_refused(
    stages: dict[str, Stage], attempt: Attempt, refusal: str
) -> None:
    with pytest.raises(KubeError, match=refusal) as refused:
        attempt(stages["controller"])
    assert refused.value.status in {403, 422}


def test_an_agent_on_another_node_is_refused_what_this_one_may(
    stages: dict[str, Stage], driver: Driver, tmp_path: Path
) -> None:
    """One account, two tokens: what is bound to a node decides."""
    stage = stages["agent"]
    stage.tell(stage.own)
    for node in (stage.other, ""):
        kubeconfig = driver.kubeconfig("agent", tmp_path / f"k-{node}", node=node)
        client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
        with pytest.raises(KubeError, match=STATUS):
            Stage(client, stage.namespace, node, stage.own).tell(stage.own, index=1)
        with pytest.raises(KubeError, match=POLICY):
            client.create(RESOURCE_SLICES, resource_slice(stage.own, [whole(0x0E)]))
        client.close()


def test_the_controller_lifts_its_gate(stages: dict[str, Stage]) -> None:
    lifted = lift(stages["controller"], SCHEDULING_GATE)
    assert isinstance(lifted, dict)
    assert lifted["spec"]["schedulingGates"] == [{"name": "example.com/wait"}]
