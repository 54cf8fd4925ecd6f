"""Parts of the driver and of the cluster end and come back under running pods."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.names import DRIVER
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim, pod_with
from tests.e2e.seen import assert_sees_what_was_granted

pytestmark = pytest.mark.cluster

_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"


def run_pod(driver: Installation, namespace: str, name: str, **spec: Any) -> str:
    """Run a pod with a card and see that it has it; gives the node."""
    driver.cluster.apply(claim(name, namespace), pod_with(name, namespace, **spec))
    wait_for_pods(driver.cluster, namespace, name)
    pod = driver.cluster.get("pod", name, f"--namespace={namespace}")
    assert_sees_what_was_granted(driver, pod)
    return str(pod["spec"]["nodeName"])


def roll_out(driver: Installation, workload: str) -> None:
    driver.cluster.kubectl("rollout", "restart", _SYSTEM, workload)
    # One node after the other.
    patience = len(driver.machines) * PATIENCE
    driver.cluster.wait("rollout", "status", _SYSTEM, workload, timeout=patience)


def test_agents_are_replaced_under_a_running_pod(driver: Installation, namespace: str) -> None:
    run_pod(driver, namespace, "before")
    roll_out(driver, "daemonset/gcu-dra-driver-agent")
    wait_until(driver.published, PATIENCE, "the cards of all nodes")
    run_pod(driver, namespace, "after")
    pod = driver.cluster.get("pod", "before", f"--namespace={namespace}")
    assert_sees_what_was_granted(driver, pod)


def test_a_killed_agent_comes_back_and_knows_what_it_prepared(
    driver: Installation, namespace: str
) -> None:
    node = run_pod(driver, namespace, "before")
    agent = driver.agent_pod(node)
    driver.cluster.kubectl("delete", "pod", agent, _SYSTEM, "--grace-period=0", "--force")
    driver.cluster.kubectl("delete", "pod", "before", f"--namespace={namespace}")
    driver.wait_for_rest()
    run_pod(driver, namespace, "after", nodeName=node)


def test_controllers_are_replaced(driver: Installation, namespace: str) -> None:
    run_pod(driver, namespace, "before")
    roll_out(driver, "deployment/gcu-dra-driver-controller")
    run_pod(driver, namespace, "after")


def test_slices_that_somebody_deletes_are_published_again(driver: Installation) -> None:
    driver.cluster.kubectl("delete", "resourceslices", f"--field-selector=spec.driver={DRIVER}")
    wait_until(driver.published, PATIENCE, "the cards of all nodes")


def test_the_kubelet_restarts_under_a_running_pod(driver: Installation, namespace: str) -> None:
    name = run_pod(driver, namespace, "before")
    driver.cluster.node(name).restart_kubelet()
    driver.cluster.wait_ready()
    wait_until(driver.published, PATIENCE, "the cards of all nodes")
    run_pod(driver, namespace, "after", nodeName=name)
