"""`legacyResources.enabled: auto` on a real API server: nodes decide, through annotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from controller.legacy_resources.decision_cache import REASON, TRANSLATE
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import PODS, SERVICE_ACCOUNTS
from dra_driver.model.effects import Effects
from dra_driver.model.names import RESOURCE_COUNT, RESOURCE_SHARED, RESOURCE_WHOLE
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.cards import in_all_modes
from tests.control_plane.conftest import Scene, events_about
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.legacy import GCUSHARE, asking, outcome, wait_until_heeded

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]
CONFIG = f"{RELEASE}-limits"
FLAGS = (f"--legacy-resources-config={CONFIG}", "--legacy-resources-delay=1")
POLICIES = "policy-legacy-resources.yaml"
ROLE = "controller/rbac.yaml"


def shown(cluster: Cluster, enabled: str, *templates: str) -> str:
    return cluster.helm(
        "template",
        RELEASE,
        str(CHART),
        f"--namespace={DRIVER_NAMESPACE}",
        f"--set=legacyResources.enabled={enabled}",
        *(f"--show-only=templates/{each}" for each in templates),
    )


@pytest.fixture(autouse=True)
def decided(
    control_plane: Cluster, api: Client, namespace: str, controller_kubeconfig: Path
) -> Iterator[None]:
    """The release as with `auto`, and as it was again."""
    config = "controller/limits.yaml"
    replace = partial(control_plane.kubectl, "replace", "--force", "--filename=-")
    control_plane.kubectl("apply", "--filename=-", stdin=shown(control_plane, "auto", config))
    replace(stdin=shown(control_plane, "auto", POLICIES, ROLE))
    wait_for(api, namespace, "as it is")
    yield
    replace(stdin=shown(control_plane, "true", POLICIES, ROLE))
    control_plane.kubectl("delete", "serviceaccount", CONFIG, f"--namespace={DRIVER_NAMESPACE}")
    wait_until_heeded(api, namespace)


def wait_for(api: Client, namespace: str, wanted: str) -> None:
    """Return when that becomes of a pod with a limit."""
    wait_until(
        lambda: outcome(api, namespace) == wanted,
        PATIENCE,
        f"limits to be treated: {wanted}",
        seen=lambda: outcome(api, namespace),
    )


def offer(cluster: Cluster, node: str, **resources: str) -> None:
    """As another device plugin of the node would, by the kubelet."""
    status = json.dumps({"status": {"capacity": resources, "allocatable": resources}})
    cluster.kubectl("patch", "node", node, "--subresource=status", f"--patch={status}")


def test_without_a_decision_limits_stay_as_they_are(scene: Scene) -> None:
    """And with no ServiceAccount; other pods are created in any case."""
    made = scene.api.create(
        PODS, asking(scene.namespace, {RESOURCE_WHOLE: "1"}, schedulerName=GCUSHARE), dry_run=True
    )
    assert made["spec"]["schedulerName"] == GCUSHARE
    scene.api.delete(SERVICE_ACCOUNTS, CONFIG, namespace=DRIVER_NAMESPACE)
    try:
        assert outcome(scene.api, scene.namespace) == "as it is"
        scene.api.create(PODS, asking(scene.namespace, {"cpu": "1"}, name="other"), dry_run=True)
    finally:
        metadata = {"name": CONFIG, "namespace": DRIVER_NAMESPACE}
        scene.api.create(
            SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        )


def test_nodes_decide_both_ways(
    scene: Scene, control_plane: Cluster, start_controller: Start
) -> None:
    node = scene.machines.add(in_all_modes(1), **{RESOURCE_COUNT: "1"})
    controller = start_controller(*FLAGS)
    wait_for(scene.api, scene.namespace, "claim")
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_SHARED: "1"}, name="before"))
    scene.eyes.bound("before")
    offer(control_plane, node, **{RESOURCE_SHARED: "6"})
    wait_for(scene.api, scene.namespace, "as it is")
    assert "resourceClaims" in scene.eyes.pod("before")["spec"]
    config = scene.api.get(SERVICE_ACCOUNTS, CONFIG, namespace=DRIVER_NAMESPACE)
    assert RESOURCE_SHARED in config["metadata"]["annotations"][REASON]
    offer(control_plane, node, **{RESOURCE_SHARED: "0"})
    wait_for(scene.api, scene.namespace, "claim")
    controller.wait_for_log("limits of new pods are left as they are")


def test_where_another_plugin_serves_the_event_says_so(
    scene: Scene, start_controller: Start
) -> None:
    """About the controller's pod, which here is a process of that name."""
    scene.machines.add([], **{RESOURCE_WHOLE: "8"})
    start_controller(*FLAGS, name="beside-others")

    def reported() -> bool:
        found = events_about(scene.api, DRIVER_NAMESPACE, "beside-others")
        return any("another device plugin offers enflame.com/gcu" in each for each in found)

    wait_until(reported, PATIENCE, "the event")
    assert outcome(scene.api, scene.namespace) == "as it is"


def test_the_controller_may_write_this_service_account_and_no_other(
    scene: Scene, controller_kubeconfig: Path
) -> None:
    client = connect(controller_kubeconfig, effects=Effects(), user_agent="tests/1")
    try:
        patch = {"metadata": {"annotations": {TRANSLATE: "false"}}}
        client.patch(SERVICE_ACCOUNTS, CONFIG, patch, namespace=DRIVER_NAMESPACE)
        selector = f"metadata.name={CONFIG}"
        client.list(SERVICE_ACCOUNTS, namespace=DRIVER_NAMESPACE, field_selector=selector)
        refused: list[Callable[[], object]] = [
            lambda: client.patch(SERVICE_ACCOUNTS, "other", patch, namespace=DRIVER_NAMESPACE),
            lambda: client.list(SERVICE_ACCOUNTS, namespace=DRIVER_NAMESPACE),
            lambda: client.delete(SERVICE_ACCOUNTS, CONFIG, namespace=DRIVER_NAMESPACE),
        ]
        for each in refused:
            with pytest.raises(KubeError) as error:
                each()
            assert not isinstance(error.value, NotFound)
    finally:
        client.close()
