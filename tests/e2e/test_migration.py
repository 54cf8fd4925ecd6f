"""Users of the vendor's gcushare move over, as docs/user/migrating-from-gcushare.md says."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import RESOURCE_SHARED
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod, wait_for_pods
from tests.e2e.installation import Installation
from tests.e2e.seen import assert_sees_what_was_granted, granted

pytestmark = pytest.mark.cluster

LIMITS = {RESOURCE_SHARED: "2"}


def deployment(namespace: str) -> dict[str, Any]:
    """Two replicas with slices, for the vendor's scheduler."""
    spec = pod("web", namespace, schedulerName="gcushare-scheduler")["spec"]
    [container] = spec["containers"]
    container["resources"] = {"limits": LIMITS}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": spec | {"terminationGracePeriodSeconds": 1},
            },
        },
    }


def test_a_deployment_moves_over(driver: Installation, namespace: str) -> None:
    """Its pods keep their limits until they are made anew, after the driver was told to serve
    them."""
    scope = f"--namespace={namespace}"

    def pods() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = driver.cluster.get("pods", scope)["items"]
        return found

    with driver.changed(legacyResources={"enabled": False}):
        driver.cluster.apply(deployment(namespace))
        wait_until(lambda: len(pods()) == 2, PATIENCE, "the replicas to be made")
    before = {each["metadata"]["uid"] for each in pods()}
    for each in pods():
        assert each["spec"]["containers"][0]["resources"]["limits"] == LIMITS
        assert "resourceClaims" not in each["spec"]
    driver.cluster.kubectl("rollout", "restart", scope, "deployment/web")
    driver.cluster.wait("rollout", "status", scope, "deployment/web")
    wait_until(lambda: len(pods()) == 2, PATIENCE, "the former replicas to be gone")
    wait_for_pods(driver.cluster, namespace, *(each["metadata"]["name"] for each in pods()))
    for each in pods():
        assert each["metadata"]["uid"] not in before
        [grant] = granted(driver, each)
        assert (grant.mode, grant.amount) == (Mode.SHARED, 2)
        assert_sees_what_was_granted(driver, each)
