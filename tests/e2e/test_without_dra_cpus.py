"""The kubelet's managers: CPUs that change leave devices open, and cards are of one NUMA node."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_dra
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import SHARED, WHOLE
from tests.e2e.seen import look
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

DENIED = "Operation not permitted"  # by the control group; a simulated node has no driver behind it
_MAJOR = 240  # of simulated nodes
_ASK_THE_KUBELET = """
import os
from pathlib import Path
from dra_driver.kubelet_api.sockets import Folders
from dra_driver.kubelet_api.pod_resources import PodResources

socket = Folders.of(Path(os.environ["GCU_KUBELET_ROOT"])).pod_resources
print(PodResources(socket, 5.0).has_exclusive_cpus())
"""


# What is reserved is rounded up to one processor that no container has alone; of two, a whole one
# is left for requests. Changes come to containers within a second.
STATIC_CPUS = {
    "cpuManagerPolicy": "static",
    "cpuManagerReconcilePeriod": "1s",
    "systemReserved": {"cpu": "100m"},
    "topologyManagerPolicy": "single-numa-node",
}


@pytest.fixture(scope="module")
def static_cpus(
    cluster_report: Callable[[str], None], driver_image: Path
) -> Iterator[OldInstallation]:
    """Of a cluster whose kubelets give processors to containers alone."""
    settings = Settings(
        f"cpus-{os.getpid()}", kubernetes=chosen_without_dra(), nodes=2, kubelet_config=STATIC_CPUS
    )
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    try:
        cluster.load_image(driver_image)
        found = OldInstallation(cluster)
        found.load_scheduler()
        yield found
    finally:
        cluster.down()


@pytest.fixture(params=["cdi", "runtime"])
def driver(request: pytest.FixtureRequest, static_cpus: OldInstallation) -> OldInstallation:
    static_cpus.install(static_cpus.values(injection=request.param))
    return static_cpus


@pytest.fixture
def namespace(driver: OldInstallation, request: pytest.FixtureRequest) -> Iterator[str]:
    """Of the test's own; its pods are gone before the next test begins."""
    name = f"cpus-{request.node.callspec.id}-{secrets.token_hex(2)}"
    driver.cluster.kubectl("create", "namespace", name)
    yield name
    driver.cluster.kubectl("delete", "pods", "--all", f"--namespace={name}")


def cpus(driver: OldInstallation, namespace: str, pod: str) -> set[int]:
    """On which processors the pod may run."""
    text = driver.cluster.execute(namespace, pod, "grep", "Cpus_allowed_list", "/proc/self/status")
    found: set[int] = set()
    for part in text.split()[-1].split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def opened(driver: OldInstallation, namespace: str, pod: str, node: str) -> str:
    """What a container says that opens a device node."""
    return driver.cluster.execute(namespace, pod, "sh", "-c", f"cat {node} 2>&1; true")


def make_a_closed_one(driver: OldInstallation, namespace: str, pod: str) -> None:
    """A node like those of cards, but of a card that is none: made by the pod itself."""
    driver.cluster.execute(namespace, pod, "mknod", "/tmp/closed", "c", f"{_MAJOR}", "200")


def assert_opens(driver: OldInstallation, namespace: str, pod: str) -> None:
    """The pod opens the nodes of its card; one that it makes itself, of no card, it may not."""
    seen = look(driver, namespace, pod, "c0")
    [minor] = seen.nodes
    assert seen.visible == seen.nodes
    assert DENIED not in opened(driver, namespace, pod, f"/dev/gcu{minor}")
    assert DENIED in opened(driver, namespace, pod, "/tmp/closed")


def test_devices_stay_open_when_cpus_change(driver: OldInstallation, namespace: str) -> None:
    """One pod shares processors, of which another takes one for itself: both are updated."""
    cluster, node = driver.cluster, min(driver.machines)
    selector = {"kubernetes.io/hostname": node}
    beside = asking("beside", namespace, {SHARED: 2}, nodeSelector=selector)
    cluster.apply(beside)
    wait_for_pods(cluster, namespace, "beside")
    before = cpus(driver, namespace, "beside")

    alone = asking("alone", namespace, {SHARED: 1}, nodeSelector=selector)
    guaranteed: dict[str, Any] = alone["spec"]["containers"][0]["resources"]["limits"]
    guaranteed |= {"cpu": "1", "memory": "64Mi"}
    cluster.apply(alone)
    wait_for_pods(cluster, namespace, "alone")
    taken = cpus(driver, namespace, "alone")
    assert len(taken) == 1
    wait_until(
        lambda: cpus(driver, namespace, "beside") == before - taken,
        PATIENCE,
        f"the processors {taken} taken from the other pod",
        seen=lambda: str(cpus(driver, namespace, "beside")),
    )
    for pod in ("beside", "alone"):
        make_a_closed_one(driver, namespace, pod)
        assert_opens(driver, namespace, pod)


def test_the_topology_manager_knows_the_numa_nodes_of_cards(
    driver: OldInstallation, namespace: str
) -> None:
    """This machine has one NUMA node. Half of the eight simulated cards are of another, and those
    are never granted."""
    cluster, node = driver.cluster, min(driver.machines)
    selector = {"kubernetes.io/hostname": node}
    cluster.apply(asking("four", namespace, {WHOLE: 4}, nodeSelector=selector))
    wait_for_pods(cluster, namespace, "four")
    held = driver.told(cluster.get("pod", "four", f"--namespace={namespace}"))
    numa = {str(card.address): card.numa for card in driver.cards(node)}
    assert {numa[card] for card, _ in held["c0"]} == {0}
    cluster.delete_pods(namespace, "four")
    wait_until(lambda: driver.free(node) == len(numa), PATIENCE, "all cards to be free")
    cluster.apply(asking("five", namespace, {WHOLE: 5}, nodeSelector=selector))
    wait_until(
        lambda: (
            cluster.get("pod", "five", f"--namespace={namespace}")["status"].get("reason")
            == "TopologyAffinityError"
        ),
        PATIENCE,
        "the kubelet to refuse cards of two NUMA nodes",
        seen=lambda: cluster.kubectl("get", "pods", f"--namespace={namespace}", "-o", "yaml"),
    )


def test_the_kubelet_is_known_to_give_cpus_alone(driver: OldInstallation) -> None:
    """What an agent asks at its start, asked in its pod (docs/adr/0033)."""
    agent = driver.agent_pod(min(driver.machines))
    answer = driver.cluster.execute(DRIVER_NAMESPACE, agent, "python3", "-c", _ASK_THE_KUBELET)
    assert answer.strip() == "True"
