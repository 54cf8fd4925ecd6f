"""What an ordinary install tells people."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.kube.http.cluster_config import SERVICE_ACCOUNT
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.e2e.installation import Installation

pytestmark = pytest.mark.cluster

_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"


def test_it_warns_of_nothing(driver: Installation) -> None:
    assert driver.told_at_first
    warnings = [each for each in driver.told_at_first if each["type"] == "Warning"]
    assert [each["message"] for each in warnings if not _is_of_a_busy_machine(each)] == []


def _is_of_a_busy_machine(event: dict[str, Any]) -> bool:
    """Whether an answer took longer than a probe waits, the first probe came while the program was
    still being loaded, or a volume had to be mounted again, as the API server or the kubelet had
    not yet read of the pod. What never comes makes the install itself fail."""
    message = event["message"]
    refused = message.startswith("Startup probe failed") and "connection refused" in message
    return refused or event["reason"] == "FailedMount" or "Client.Timeout exceeded" in message


def test_of_the_agents_pod_only_the_agent_has_a_token(driver: Installation) -> None:
    """As the API server made the pod: it adds a token to what does not decline it."""
    pods = driver.cluster.get("pods", _SYSTEM, "--selector=app.kubernetes.io/component=agent")
    for pod in pods["items"]:
        with_token = {
            container["name"]
            for container in [*pod["spec"]["initContainers"], *pod["spec"]["containers"]]
            for mount in container["volumeMounts"]
            if mount["mountPath"] == str(SERVICE_ACCOUNT)
        }
        assert with_token == {"agent"}
    assert pods["items"]
