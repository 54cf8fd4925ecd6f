"""What users meet: variables, waiting pods, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.names import DRIVER, ENV_VISIBLE_DEVICES
from tests.cluster.errors import CommandError
from tests.cluster.workloads import wait_for_pods
from tests.e2e.events import wait_for_note
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim, pod_with
from tests.e2e.seen import assert_sees_what_was_granted

pytestmark = pytest.mark.cluster


def test_the_claim_wins_over_a_variable_of_the_image(driver: Installation, namespace: str) -> None:
    pod = pod_with("one", namespace)
    pod["spec"]["containers"][0]["env"] = [{"name": ENV_VISIBLE_DEVICES, "value": "all"}]
    driver.cluster.apply(claim("one", namespace), pod)
    wait_for_pods(driver.cluster, namespace, "one")
    assert_sees_what_was_granted(
        driver, driver.cluster.get("pod", "one", f"--namespace={namespace}")
    )


def test_a_container_without_the_claim_sees_no_card(driver: Installation, namespace: str) -> None:
    pod = pod_with("one", namespace)
    other = {**pod["spec"]["containers"][0], "name": "other", "resources": {}}
    pod["spec"]["containers"].append(other)
    driver.cluster.apply(claim("one", namespace), pod)
    wait_for_pods(driver.cluster, namespace, "one")
    assert_sees_what_was_granted(
        driver, driver.cluster.get("pod", "one", f"--namespace={namespace}")
    )


@pytest.mark.matrix
def test_best_fit_over_nodes_leaves_the_large_node_whole(
    driver: Installation, namespace: str
) -> None:
    """Three claims fit the node of four cards; the eight cards of the other stay together."""
    for name in ("a", "b", "c"):
        driver.cluster.apply(claim(name, namespace), pod_with(name, namespace))
    wait_for_pods(driver.cluster, namespace, "a", "b", "c")
    driver.cluster.apply(claim("all", namespace, count=8), pod_with("all", namespace))
    wait_for_pods(driver.cluster, namespace, "all")
    pods: list[dict[str, Any]] = driver.cluster.get("pods", f"--namespace={namespace}")["items"]
    for pod in pods:
        assert_sees_what_was_granted(driver, pod)


@pytest.mark.matrix
def test_a_pod_that_must_wait_is_told_why_and_runs_when_cards_are_free(
    driver: Installation, namespace: str
) -> None:
    driver.cluster.apply(claim("most", namespace, count=8), pod_with("most", namespace))
    wait_for_pods(driver.cluster, namespace, "most")
    driver.cluster.apply(claim("late", namespace, count=5), pod_with("late", namespace))
    for kind in ("Pod", "ResourceClaim"):
        wait_for_note(driver, namespace, kind, "GcuAllocationFailed", "8 held")
    driver.cluster.kubectl("delete", "pod", "most", f"--namespace={namespace}")
    wait_for_pods(driver.cluster, namespace, "late")


def test_configuration_that_is_not_understood_is_refused_by_the_controller(
    driver: Installation, namespace: str
) -> None:
    driver.cluster.apply(
        claim("one", namespace, config=_packing(node="spread")), pod_with("one", namespace)
    )
    for kind in ("Pod", "ResourceClaim"):
        wait_for_note(driver, namespace, kind, "GcuAllocationFailed", "packing.node")


@pytest.mark.matrix
def test_a_claim_spreads_by_its_own_configuration(driver: Installation, namespace: str) -> None:
    """Packed, it would be put on the node of four cards, and the last one onto the same."""
    for name, config in (("a", []), ("b", _packing(nodes="spread"))):
        driver.cluster.apply(claim(name, namespace, config=config), pod_with(name, namespace))
        wait_for_pods(driver.cluster, namespace, name)
    pods = driver.cluster.get("pods", f"--namespace={namespace}")["items"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    for pod in pods:
        assert_sees_what_was_granted(driver, pod)


def test_a_claim_may_not_tolerate_the_taint_that_keeps_the_scheduler_away(
    driver: Installation, namespace: str
) -> None:
    wanted = claim("one", namespace)
    request = wanted["spec"]["devices"]["requests"][0]["exactly"]
    request["tolerations"] = [{"key": "gcu.enflame.com/allocated-by", "operator": "Exists"}]
    with pytest.raises(CommandError) as refused:
        driver.cluster.apply(wanted)
    assert "gcu.enflame.com/allocated-by" in refused.value.output


def _packing(**fields: str) -> list[dict[str, Any]]:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": fields}
    return [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
