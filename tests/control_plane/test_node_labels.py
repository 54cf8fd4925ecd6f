"""Labels of Nodes by agents, where the chart asks for them: right, policy, uninstall."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from dra_driver.agent.cards.node_labels import card_labels
from dra_driver.device_plugin.node_annotations import node_metadata
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.node_metadata import apply_metadata
from dra_driver.kube.resources import NODES
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import (
    ANNOTATION_CARDS,
    FIELD_MANAGER,
    FIELD_MANAGER_LABELS,
    LABEL_CARD_COUNT,
)
from dra_driver.uninstall.cleanup import clear_nodes
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.attempts import is_refused
from tests.control_plane.driver import Driver
from tests.unit.device_plugin.test_node_annotations import view
from tests.unit.node.world import CARDS, card

pytestmark = pytest.mark.control_plane

OWN, OTHER = "labels-own", "labels-other"
FOUND: Final = {address: card(address, minor) for minor, address in enumerate(CARDS[:2])}
THEIRS: Final = {"rack": "two"}


@pytest.fixture(scope="module")
def agent(
    control_plane: Cluster, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """An agent's pod on the node OWN, once the policy is heeded."""
    for name in (OWN, OTHER):
        control_plane.add_node_object(name, {"rack": "one"})
    with driver.changed(nodeLabels={"enabled": True}):
        path = tmp_path_factory.mktemp("agent") / "kubeconfig"
        kubeconfig = driver.kubeconfig("agent", path, node=OWN)
        with closing(connect(kubeconfig, effects=Effects(), user_agent="tests/1")) as client:
            wait_until(
                lambda: is_refused(lambda: write(client, OTHER, labels=THEIRS)),
                PATIENCE,
                "the policy to be heeded",
            )
            yield client
    control_plane.kubectl("delete", "node", OWN, OTHER)


def write(client: Client, node: str, **metadata: object) -> Object:
    return client.patch(NODES, node, {"metadata": metadata}, subresource="status")


def label(client: Client) -> None:
    """As the agent does."""
    apply_metadata(client, OWN, {"labels": card_labels(FOUND.values())}, FIELD_MANAGER_LABELS)


def metadata(api: Client) -> Object:
    found: Object = api.get(NODES, OWN)["metadata"]
    return found


def test_an_agent_labels_its_node(api: Client, agent: Client) -> None:
    label(agent)
    assert metadata(api)["labels"].items() >= card_labels(FOUND.values()).items()
    assert metadata(api)["labels"]["rack"] == "one"


@pytest.mark.parametrize(
    ("node", "changed", "words"),
    [
        pytest.param(OTHER, {"labels": {LABEL_CARD_COUNT: "9"}}, "may not write", id="another's"),
        pytest.param(OWN, {"labels": THEIRS}, "writes labels", id="another label"),
        pytest.param(OWN, {"labels": {"rack": None}}, "writes labels", id="a label less"),
        pytest.param(
            OWN, {"labels": {"gcu.enflame.com/other": "1"}}, "writes labels", id="of the driver's"
        ),
        pytest.param(OWN, {"finalizers": ["a.example/b"]}, "changes nothing", id="a finalizer"),
    ],
)
def test_it_writes_nothing_else(agent: Client, node: str, changed: Object, words: str) -> None:
    with pytest.raises(KubeError, match=words):
        write(agent, node, **changed)


def test_an_uninstall_takes_back_what_agents_wrote(api: Client, agent: Client) -> None:
    """What somebody else had written before them stays."""
    clear_nodes(api)
    api.patch(NODES, OWN, {"metadata": {"labels": {LABEL_CARD_COUNT: "2"}}})
    apply_metadata(api, OWN, node_metadata(view(), ()) or {}, FIELD_MANAGER)
    label(agent)
    before = metadata(api)
    assert ANNOTATION_CARDS in before["annotations"]
    clear_nodes(api)
    after = metadata(api)
    own = {each for each in after["labels"] if "enflame" in each}
    assert own == {LABEL_CARD_COUNT}
    assert not [each for each in after["annotations"] if "enflame" in each]
    assert after["labels"]["rack"] == "one"
    label(agent)
    assert metadata(api)["labels"].items() >= card_labels(FOUND.values()).items()
