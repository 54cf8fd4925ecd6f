"""The oldest Kubernetes with ResourceClaims: its API server drops device taints and amounts, so the
agents publish hidden slices. Two nodes, each thing that users do once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_taints
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import RELEASE, Installation
from tests.e2e.manifests import claim, pod_with, portable_claim_in
from tests.e2e.one_card import OneCard

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"


@pytest.fixture(scope="module")
def hidden(cluster_report: Callable[[str], None], driver_image: Path) -> Iterator[Installation]:
    """The driver on two nodes of 1.34.4, or of 1.35.4 where that is chosen."""
    name = f"hidden-{os.getpid()}"
    settings = Settings(name, kubernetes=chosen_without_taints(), nodes=2)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    try:
        cluster.load_image(driver_image)
        installation = Installation(cluster)
        installation.install()
        yield installation
    finally:
        cluster.down()


class PortableCard(OneCard):
    """Amounts are in the claims' configuration."""

    def apply(self, name: str, mode: Mode, amount: int | None = None) -> None:
        wanted = portable_claim_in(mode, name, self.namespace, amount, card=self.card)
        selector = {"kubernetes.io/hostname": self.node.name}
        self.cluster.apply(wanted, pod_with(name, self.namespace, nodeSelector=selector))


def card(driver: Installation, namespace: str) -> OneCard:
    driver.cluster.kubectl("create", "namespace", namespace)
    return PortableCard(driver, namespace)


def test_slices_are_offered_to_no_node(hidden: Installation) -> None:
    slices = hidden.slices()
    pools = {each["spec"]["pool"]["name"] for each in slices}
    assert pools == {pool_name(node.name) for node in hidden.cluster.nodes}
    for each in slices:
        assert each["spec"]["nodeSelector"] == {"nodeSelectorTerms": [{}]}
        [owner] = each["metadata"]["ownerReferences"]
        assert owner["kind"] == "Node"
    before = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in slices}
    agents = "daemonset/gcu-dra-driver-agent"
    hidden.cluster.kubectl("rollout", "restart", _SYSTEM, agents)
    hidden.wait_for_agents()
    after = hidden.slices()
    assert before == {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in after
    }


def test_three_modes_exclude_each_other_and_survive_a_kill_of_the_agent(
    hidden: Installation,
) -> None:
    one = card(hidden, "modes")
    one.run("first", Mode.SHARED, 2)
    one.run("second", Mode.SHARED, 4)
    one.apply("third", Mode.SHARED, 1)
    one.wait_for_words("third", "GcuAllocationFailed", "1 requested")
    one.apply("whole", Mode.WHOLE)
    one.wait_for_words("whole", "GcuAllocationFailed", "in shared mode")
    agent = hidden.agent_pod(one.node.name)
    hidden.cluster.kubectl("delete", "pod", agent, _SYSTEM, "--grace-period=0", "--force")
    one.end("first", "second")
    one.wait_for("third")
    one.end("third")
    one.wait_for("whole")
    one.end("whole")
    one.run("large", Mode.DRS, 3)
    one.run("small", Mode.DRS, 1)
    one.wait_until(lambda: sorted(one.profiles()) == ["1g.6gb", "3g.20gb"], "both instances")
    one.end("large", "small")
    hidden.wait_for_rest()


def test_claims_are_packed_onto_the_fuller_node(hidden: Installation) -> None:
    hidden.cluster.kubectl("create", "namespace", "packed")
    one = OneCard(hidden, "packed")
    for name in ("a", "b", "c"):
        hidden.cluster.apply(claim(name, "packed"), pod_with(name, "packed"))
    one.wait_for("a", "b", "c")
    hidden.cluster.apply(claim("all", "packed", count=8), pod_with("all", "packed"))
    one.wait_for("all")
    one.end("a", "b", "c", "all")


def test_slices_are_deleted_when_their_agents_have_gone(hidden: Installation) -> None:
    agents = f"daemonset/{RELEASE}-agent"
    hidden.cluster.kubectl("delete", _SYSTEM, agents)
    wait_until(lambda: not hidden.slices(), PATIENCE, "no ResourceSlices")
    hidden.install()


def test_an_uninstall_is_refused_while_claims_have_gcus_and_leaves_no_slice(
    hidden: Installation,
) -> None:
    one = card(hidden, "uninstall")
    one.run("holder", Mode.SHARED, 2)
    with pytest.raises(CommandError, match="claims have GCUs"):
        hidden.uninstall()
    one.end("holder")
    hidden.uninstall()
    assert hidden.slices() == []
