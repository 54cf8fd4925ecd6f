"""The controller beside a real API server, kube-scheduler and kube-controller-manager."""

from __future__ import annotations

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, reserved_for, results
from dra_driver.model.names import FINALIZER
from tests.control_plane.conftest import Eyes, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.machines import Machines
from tests.control_plane.objects import (
    IGNORES_PORTS,
    TEMPLATES,
    claim,
    pod_with,
    template,
    whole,
    with_port,
)

pytestmark = pytest.mark.control_plane


def test_a_pod_gets_a_whole_card(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    node = machines.add([whole(0)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one"))
    assert eyes.bound("user") == node
    found = eyes.allocated("one")
    [result] = results(found)
    assert (result.pool, result.device) == (f"gcu.enflame.com/{node}", "whole-0000-00-00-0")
    assert [each["name"] for each in reserved_for(found)] == ["user"]
    assert FINALIZER in found["metadata"]["finalizers"]
    assert (allocation(found) or {})["allocationTimestamp"]


def test_a_claim_of_a_template_and_its_end(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    api.create(TEMPLATES, template("cards", namespace))
    api.create(PODS, pod_with("user", namespace, template="cards"))
    eyes.bound("user")
    [made] = api.list(RESOURCE_CLAIMS, namespace=namespace).items
    eyes.end("user")
    eyes.gone(made["metadata"]["name"])


def test_a_node_that_the_scheduler_refuses_is_left_for_another(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, start_controller: Start
) -> None:
    """What only the scheduler knows: the pod's port is taken on the node that packs best."""
    start_controller(IGNORES_PORTS).wait_for_log("leads")
    small = machines.add([whole(0)])
    large = machines.add([whole(0), whole(1)])
    api.create(PODS, with_port(pod_with("taker", namespace, nodeName=small)))
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, with_port(pod_with("user", namespace, "one")))
    assert eyes.bound("user") == large
    [result] = results(eyes.claim("one"))
    assert result.pool == f"gcu.enflame.com/{large}"
