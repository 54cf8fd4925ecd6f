"""`helm uninstall` strands no pod and leaves nothing; a later install adopts what was forced."""

from __future__ import annotations

import pytest

from dra_driver.model.mode import Mode
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import wait_until
from tests.e2e.installation import RELEASE, Installation
from tests.e2e.one_card import OneCard

pytestmark = pytest.mark.cluster

# Cluster-wide kinds in which a trace of the driver could be left.
_KINDS = (
    "deviceclasses,clusterroles,clusterrolebindings,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings"
)
_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"
_IN_NAMESPACE = "daemonsets,deployments,jobs,leases,serviceaccounts,roles,rolebindings,configmaps"
_WIPED_SECONDS = 90.0  # the kubelet waits 30 s for a driver to come back


def left(driver: Installation) -> list[str]:
    """What of the driver is on the API server, but for what goes with the agents' sockets."""
    found = driver.cluster.kubectl("get", _KINDS, "--output=name").split()
    found += driver.cluster.kubectl("get", _IN_NAMESPACE, _SYSTEM, "--output=name").split()
    return [name for name in found if "gcu" in name]


def test_nothing_is_left(driver: Installation) -> None:
    assert left(driver)
    driver.uninstall()
    assert left(driver) == []
    wait_until(lambda: not driver.slices(), _WIPED_SECONDS, "no ResourceSlices")
    for node in driver.cluster.nodes:
        assert not driver.cdi_files(node)
        registry = node.host_path("/var/lib/kubelet/plugins_registry")
        assert not list(registry.iterdir())
    driver.install()


def test_it_is_refused_while_a_claim_has_a_gcu(driver: Installation, one: OneCard) -> None:
    one.run("holder", Mode.DRS, 1)
    agents = {node: driver.agent_pod(node) for node in driver.machines}
    with pytest.raises(CommandError) as refusal:
        driver.uninstall()
    told = refusal.value.output.replace("\\n", "\n")  # helm 4 logs what a hook says as one line
    assert f"claim {one.namespace}/holder: 1 device of {one.node.name}, used by pod holder" in told
    assert f"helm uninstall {RELEASE} {_SYSTEM.replace('=', ' ')} --no-hooks" in told
    assert agents == {node: driver.agent_pod(node) for node in driver.machines}
    # What it says of keeping the driver holds, too.
    [rollback] = [line.split() for line in told.splitlines() if "helm rollback" in line]
    driver.cluster.helm(*rollback[1:])
    driver.install()
    one.wait_for("holder")
    one.end("holder")
    driver.uninstall()
    assert left(driver) == []
    driver.install()


def test_a_later_install_adopts_what_was_left_by_force(driver: Installation, one: OneCard) -> None:
    one.run("ends", Mode.DRS, 1)
    one.run("stays", Mode.DRS, 3)
    driver.uninstall("--no-hooks")
    driver.cluster.kubectl("delete", "pod", "ends", one.scope, "--wait=false")
    wait_until(lambda: not driver.slices(), _WIPED_SECONDS, "no ResourceSlices")
    assert one.profiles() == ["1g.6gb", "3g.20gb"]
    assert len(driver.cdi_files(one.node)) == 2
    driver.install()
    one.wait_until(lambda: one.profiles() == ["3g.20gb"], "the end of the pod that waits for it")
    one.wait_for("stays")
    one.run("after", Mode.DRS, 1)
    one.end("stays", "after")
