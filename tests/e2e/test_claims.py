"""What users meet: variables, waiting pods, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER, ENV_VISIBLE_DEVICES, pool_name
from tests.cluster.errors import CommandError
from tests.cluster.workloads import wait_for_pods
from tests.e2e.events import wait_for_note
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim, pod_with
from tests.e2e.seen import assert_sees_what_was_granted

pytestmark = pytest.mark.cluster

_SECOND_TRY = 150.0


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
        words = "the field packing.node is unknown"
        wait_for_note(driver, namespace, kind, "GcuAllocationFailed", words)


def test_a_claim_spreads_by_its_own_configuration(driver: Installation, namespace: str) -> None:
    """Packed, it would be put on the node of four cards, and the last one onto the same."""
    for name, config in (("a", []), ("b", _packing(nodes="spread"))):
        driver.cluster.apply(claim(name, namespace, config=config), pod_with(name, namespace))
        wait_for_pods(driver.cluster, namespace, name)
    pods = driver.cluster.get("pods", f"--namespace={namespace}")["items"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    for pod in pods:
        assert_sees_what_was_granted(driver, pod)


def test_prepare_refuses_what_was_allocated_past_the_controller(
    driver: Installation, namespace: str
) -> None:
    node = driver.cluster.nodes[0].name
    wanted = claim("one", namespace, config=_packing(node="spread"))
    driver.cluster.apply(wanted, pod_with("one", namespace, nodeName=node))
    _allocate_by_hand(driver, node, wanted, pod="one")
    words = "the field packing.node is unknown"
    # The kubelet may have looked before there was an allocation: it tries again after 60 to 90 s.
    wait_for_note(
        driver, namespace, "Pod", "FailedPrepareDynamicResources", words, timeout=_SECOND_TRY
    )


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


def _allocate_by_hand(driver: Installation, node: str, wanted: dict[str, Any], *, pod: str) -> None:
    """Give the claim a whole card of the node, as an allocator that knows nothing of us would, and
    reserve it for the pod, without which the kubelet does not ask for it."""
    pool = pool_name(node)
    slices = driver.cluster.get("resourceslices")["items"]
    device = next(
        each["name"]
        for found in slices
        if found["spec"]["pool"]["name"] == pool
        for each in found["spec"]["devices"]
        if each["name"].startswith(Mode.WHOLE)
    )
    result = {"request": "gcu", "driver": DRIVER, "pool": pool, "device": device}
    config = [{"source": "FromClaim", **each} for each in wanted["spec"]["devices"]["config"]]
    allocation = {"devices": {"results": [result], "config": config}}
    in_namespace = f"--namespace={wanted['metadata']['namespace']}"
    uid = driver.cluster.get("pod", pod, in_namespace)["metadata"]["uid"]
    status = {
        "allocation": allocation,
        "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}],
    }
    driver.cluster.kubectl(
        "patch",
        "resourceclaim",
        wanted["metadata"]["name"],
        in_namespace,
        "--subresource=status",
        "--type=merge",
        f"--patch={json.dumps({'status': status})}",
    )
