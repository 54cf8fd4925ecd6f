"""Pods with the vendor's limits, from their manifest to a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, Result, results
from dra_driver.model.names import CLASS_LIMIT_PREFIX as OF_CLASS
from dra_driver.model.names import (
    CLASS_SHARED,
    LABEL_MADE_FOR_LIMITS,
    RESOURCE_CORE,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.cards import in_all_modes
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver
from tests.control_plane.legacy import GCUSHARE, asking, outcome, wait_until_heeded
from tests.control_plane.objects import template
from tests.unit.asks.cases import before

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)


@pytest.fixture(autouse=True)
def heeded(api: Client, driver: Driver, namespace: str) -> None:
    wait_until_heeded(api, namespace)


def held_by(scene: Scene, pod: str) -> list[Result]:
    """What the pod was given, once it is bound."""
    scene.eyes.bound(pod)
    statuses = scene.eyes.pod(pod)["status"]["resourceClaimStatuses"]
    return [
        each
        for status in statuses
        for each in results(scene.eyes.claim(status["resourceClaimName"]))
    ]


def stored_template(scene: Scene, name: str) -> Object | None:
    try:
        return scene.api.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=scene.namespace)
    except NotFound:
        return None


GIVEN: dict[str, tuple[list[dict[str, str]], list[str]]] = {
    "a whole card": ([{RESOURCE_WHOLE: "1"}], ["whole"]),
    "two whole cards": ([{RESOURCE_WHOLE: "2"}], ["whole", "whole"]),
    "two slices of one card": ([{RESOURCE_SHARED: "2"}], ["shared"]),
    "an instance": ([{RESOURCE_DRS: "3"}], ["drs"]),
    "devices of a class, which are of two cards": (
        [{OF_CLASS + CLASS_SHARED: "2"}],
        ["shared"] * 2,
    ),
    "containers with an instance each": ([{RESOURCE_DRS: "1"}, {RESOURCE_DRS: "3"}], ["drs"] * 2),
}


@pytest.mark.parametrize(("limits", "kinds"), GIVEN.values(), ids=GIVEN)
def test_a_pod_gets_what_its_limits_say(
    scene: Scene, controller: ControllerProcess, limits: list[dict[str, str]], kinds: list[str]
) -> None:
    scene.machines.add(in_all_modes(1, 2))
    scene.api.create(PODS, asking(scene.namespace, *limits, schedulerName=GCUSHARE))
    held = held_by(scene, "legacy")
    assert [each.device.partition("-")[0] for each in held] == kinds
    amounts = [next(iter(each.values())) for each in limits]
    if not limits[0].keys() & {RESOURCE_WHOLE, OF_CLASS + CLASS_SHARED}:
        assert len({each.device for each in held}) == 1
        assert [next(iter(each.consumed.values())) for each in held] == amounts


def test_an_init_container_adds_nothing(scene: Scene, controller: ControllerProcess) -> None:
    """The node has two cards, all of which the pod's container asks for."""
    scene.machines.add(in_all_modes(1, 2))
    limits = {RESOURCE_WHOLE: "2"}
    scene.api.create(PODS, asking(scene.namespace, limits, **before({RESOURCE_WHOLE: "1"})))
    assert len(held_by(scene, "legacy")) == 2


def test_a_limit_of_0_keeps_no_pod_from_a_node(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add(in_all_modes(1))
    limits = dict.fromkeys((RESOURCE_WHOLE, RESOURCE_CORE, OF_CLASS + CLASS_SHARED), "0")
    scene.api.create(PODS, asking(scene.namespace, limits))
    scene.eyes.bound("legacy")
    assert "resourceClaims" not in scene.eyes.pod("legacy")["spec"]


def test_slices_of_two_containers_are_of_one_card(
    scene: Scene, controller: ControllerProcess
) -> None:
    """4 and 1 would fit best onto two cards: 4 are free of the one, and 6 of the other."""
    scene.machines.add(in_all_modes(1, 2))
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_SHARED: "2"}, name="first"))
    [first] = held_by(scene, "first")
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_SHARED: "4"}, {RESOURCE_SHARED: "1"}))
    [one, other] = held_by(scene, "legacy")
    assert one.device == other.device != first.device


def test_pods_that_are_made_at_the_same_time(scene: Scene, controller: ControllerProcess) -> None:
    """As many as there are slices, in a namespace that has no template yet."""
    scene.machines.add(in_all_modes(*range(1, 9)))
    names = [f"pod-{n:02}" for n in range(48)]
    made = [asking(scene.namespace, {RESOURCE_SHARED: "1"}, name=name) for name in names]
    scene.hands.for_all(lambda each: scene.api.create(PODS, each), made)

    def waiting() -> list[str]:
        return [
            each["metadata"]["name"]
            for each in scene.api.list(PODS, namespace=scene.namespace).items
            if not each["spec"].get("nodeName")
        ]

    wait_until(lambda: not waiting(), PATIENCE, "all pods bound", seen=lambda: str(waiting()))
    held = Counter(result.device for name in names for result in held_by(scene, name))
    assert sorted(held.values()) == [6] * 8


def test_a_deployment_is_scaled(scene: Scene, controller: ControllerProcess) -> None:
    """Its manifest stays as it is, and one template does for all replicas."""
    scene.machines.add(in_all_modes(1, 2))
    pod = asking(scene.namespace, {RESOURCE_SHARED: "3"}, schedulerName=GCUSHARE)
    scene.api.create(
        DEPLOYMENTS,
        {
            "apiVersion": DEPLOYMENTS.api_version,
            "kind": DEPLOYMENTS.kind,
            "metadata": {"name": "legacy", "namespace": scene.namespace},
            "spec": {
                "replicas": 4,
                "selector": {"matchLabels": {"app": "legacy"}},
                "template": {"metadata": {"labels": {"app": "legacy"}}, "spec": pod["spec"]},
            },
        },
    )

    def bound() -> int:
        pods = scene.api.list(PODS, namespace=scene.namespace).items
        return sum(bool(each["spec"].get("nodeName")) for each in pods)

    wait_until(lambda: bound() == 4, PATIENCE, "four replicas bound", seen=lambda: str(bound()))
    [made] = scene.api.list(RESOURCE_CLAIM_TEMPLATES, namespace=scene.namespace).items
    assert made["metadata"]["name"] == "enflame-shared-gcu-3"
    kept = scene.api.get(DEPLOYMENTS, "legacy", namespace=scene.namespace)
    [container] = kept["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {RESOURCE_SHARED: "3"}


def test_a_template_goes_after_its_last_pod(scene: Scene, start_controller: Start) -> None:
    start_controller("--template-retention=1").wait_for_log("leads")
    scene.machines.add(in_all_modes(1))
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_SHARED: "2"}))
    held_by(scene, "legacy")
    assert stored_template(scene, "enflame-shared-gcu-2") is not None
    scene.eyes.end("legacy")
    wait_until(
        lambda: stored_template(scene, "enflame-shared-gcu-2") is None,
        PATIENCE,
        "the template gone",
    )


def test_somebody_elses_template_is_not_touched(scene: Scene, start_controller: Start) -> None:
    start_controller("--template-retention=1").wait_for_log("leads")
    scene.machines.add(in_all_modes(1, 2))
    theirs = scene.api.create(
        RESOURCE_CLAIM_TEMPLATES, template("enflame-shared-gcu-2", scene.namespace)
    )
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_SHARED: "2"}))
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_SHARED: "1"}, name="other"))
    held_by(scene, "other")
    scene.eyes.end("legacy")
    scene.eyes.end("other")
    wait_until(
        lambda: stored_template(scene, "enflame-shared-gcu-1") is None,
        PATIENCE,
        "our template gone",
    )
    assert stored_template(scene, "enflame-shared-gcu-2") == theirs


def test_a_size_without_a_profile_waits_with_words(
    scene: Scene, controller: ControllerProcess
) -> None:
    """A limit is not rounded up."""
    scene.machines.add(in_all_modes(1))
    scene.api.create(PODS, asking(scene.namespace, {RESOURCE_DRS: "2"}))
    scene.wait_for_event("legacy", "1 requested; the profiles of cards are 1g.7gb,3g.21gb,6g.42gb")
    assert LABEL_MADE_FOR_LIMITS in _labels(stored_template(scene, "enflame-drs-gcu-2"))
    assert not scene.eyes.pod("legacy")["spec"].get("nodeName")


def _labels(obj: Object | None) -> Object:
    assert obj is not None
    labels: Object = obj["metadata"]["labels"]
    return labels


@pytest.fixture
def from_before(control_plane: Cluster, api: Client, namespace: str) -> None:
    """A pod that was made while the policies were away."""
    shown = control_plane.helm(
        "template",
        RELEASE,
        str(CHART),
        f"--namespace={DRIVER_NAMESPACE}",
        "--show-only=templates/policy-legacy-resources.yaml",
        "--set=legacyResources.enabled=true",
    )
    control_plane.kubectl("delete", "--filename=-", stdin=shown)

    wait_until(lambda: outcome(api, namespace) == "as it is", PATIENCE, "the policies to be away")
    api.create(PODS, asking(namespace, {RESOURCE_WHOLE: "1"}, name="before"))
    control_plane.kubectl("create", "--filename=-", stdin=shown)
    wait_until_heeded(api, namespace)


def test_a_pod_that_was_there_before_stays_as_it_is(
    scene: Scene, controller: ControllerProcess, from_before: None
) -> None:
    scene.api.patch(
        PODS,
        "before",
        {"metadata": {"labels": {"touched": "yes"}}},
        namespace=scene.namespace,
    )
    pod = scene.eyes.pod("before")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {RESOURCE_WHOLE: "1"}
    assert "resourceClaims" not in pod["spec"]
    assert scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).items == ()
