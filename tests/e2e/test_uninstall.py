"""`helm uninstall` strands no pod; a later install adopts what was left."""

from __future__ import annotations

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import SCHEDULING_GATE, TAINT_FAILING
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import RELEASE, Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.one_card import OneCard

pytestmark = [pytest.mark.cluster, pytest.mark.matrix, pytest.mark.usefixtures("restored")]

# Cluster-wide kinds in which a trace of the driver could be left.
_KINDS = (
    "deviceclasses,clusterroles,clusterrolebindings,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings,mutatingwebhookconfigurations"
)
_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"
_IN_NAMESPACE = "daemonsets,deployments,jobs,leases,serviceaccounts,roles,rolebindings,configmaps"
_STATE = "plugins/gcu.enflame.com"


def left(driver: Installation) -> list[str]:
    """What of the driver is on the API server, but for what goes with the agents' sockets."""
    found = driver.cluster.kubectl("get", _KINDS, "--output=name").split()
    found += driver.cluster.kubectl("get", _IN_NAMESPACE, _SYSTEM, "--output=name").split()
    return [name for name in found if "gcu" in name]


def test_nothing_is_left_but_what_the_page_says(driver: Installation, one: OneCard) -> None:
    """An instance that could not be destroyed stays in its node's journal; as no claim has it,
    nothing is refused. The next install destroys it."""
    one.run("holder", Mode.DRS, 1)
    one.machine.set_fault("destroy-fails", card=one.card)
    try:
        one.end("holder")
        assert left(driver)
        driver.uninstall()
        assert left(driver) == []
        assert all(_STATE in driver.traces(node) for node in driver.cluster.nodes)
        [other] = [node for node in driver.cluster.nodes if node.name != one.node.name]
        driver.clear_nodes(other)
        assert driver.traces(other) == set()
        wait_until(lambda: not driver.slices(), PATIENCE, "no ResourceSlices")
        assert one.profiles() == ["1g.6gb"]
    finally:
        one.machine.clear_faults()
        driver.install()
    one.wait_until(lambda: not one.profiles(), "the end of the instance")
    one.wait_until(lambda: not one.tainted(TAINT_FAILING), "the end of the taint")


def test_pods_that_are_held_back_are_let_go(driver: Installation, one: OneCard) -> None:
    """Without the controller nobody would name their node. Without room they keep their gate."""
    values = {
        "allocator": "scheduler",
        "nomination": {"waiting": 0},
    }

    def gates() -> list[object]:
        pods = driver.cluster.get("pods", one.scope)["items"]
        return [pod["spec"].get("schedulingGates") for pod in pods]

    with driver.changed(**values):
        too_many = claim_in(Mode.WHOLE, "too-many", one.namespace)
        too_many["spec"]["devices"]["requests"][0]["exactly"]["count"] = 32
        driver.cluster.apply(too_many, pod_with("too-many", one.namespace))
        one.wait_for_words("too-many", "GcuAllocationFailed", "32 requested")
        assert gates() == [[{"name": SCHEDULING_GATE}]]
        driver.uninstall()
        assert gates() == [None]
        driver.cluster.apply(pod_with("too-many", one.namespace, name="later"))
        assert gates() == [None, None]
        one.end("too-many", "later")


def test_it_is_refused_while_a_claim_has_a_gcu(driver: Installation, one: OneCard) -> None:
    """Forced, it leaves what pods have, and a later install adopts that."""
    one.run("ends", Mode.DRS, 1)
    one.run("stays", Mode.DRS, 3)
    agents = {node: driver.agent_pod(node) for node in driver.machines}
    with pytest.raises(CommandError) as refusal:
        driver.uninstall()
    told = refusal.value.output.replace("\\n", "\n")  # helm 4 logs what a hook says as one line
    user = f"pod {one.namespace}/stays"
    assert f"claim {one.namespace}/stays: 1 device of {one.node.name}, used by {user}" in told
    assert f"helm uninstall {RELEASE} {_SYSTEM.replace('=', ' ')} --no-hooks" in told
    assert agents == {node: driver.agent_pod(node) for node in driver.machines}
    # What it says of keeping the driver holds, too.
    [rollback] = [line.split() for line in told.splitlines() if "helm rollback" in line]
    driver.cluster.helm(*rollback[1:])
    one.wait_for("ends", "stays")

    driver.uninstall("--no-hooks")
    assert all(_STATE in driver.traces(node) for node in driver.cluster.nodes)
    driver.cluster.kubectl("delete", "pod", "ends", one.scope, "--wait=false")
    wait_until(lambda: not driver.slices(), PATIENCE, "no ResourceSlices")
    assert one.profiles() == ["1g.6gb", "3g.20gb"]
    assert len(driver.cdi_files(one.node)) == 2
    driver.install()
    one.wait_until(lambda: one.profiles() == ["3g.20gb"], "the end of the pod that waits for it")
    one.wait_for("stays")
    one.run("after", Mode.DRS, 1)
    one.end("stays", "after")
