"""No pod waits for a driver that is gone."""

from __future__ import annotations

from dra_driver.kube.errors import Invalid
from dra_driver.kube.resources import MUTATING_WEBHOOK_CONFIGURATIONS, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER, SCHEDULING_GATE
from dra_driver.uninstall.check import lift_gates
from tests.control_plane.objects import pod_with
from tests.fake_api.api import FakeApi


def gated(name: str, *others: str) -> Object:
    gates = [{"name": gate} for gate in (SCHEDULING_GATE, *others)]
    return pod_with(name, "team", schedulingGates=gates)


def gates(api: FakeApi) -> dict[str, list[str]]:
    return {
        pod["metadata"]["name"]: [gate["name"] for gate in pod["spec"]["schedulingGates"]]
        for pod in api.all(PODS)
    }


def test_all_gated_pods_go_those_that_come_meanwhile_included() -> None:
    """API servers call the webhook for a moment after its configuration is deleted."""
    api = FakeApi()
    api.put(MUTATING_WEBHOOK_CONFIGURATIONS, {"metadata": {"name": DRIVER}})
    api.put(PODS, gated("first"))
    api.put(PODS, gated("also-held", "example.com/quota"))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        assert not api.all(MUTATING_WEBHOOK_CONFIGURATIONS)
        if not waited:
            api.put(PODS, gated("late"))
        waited.append(seconds)

    assert lift_gates(api, wait) == 3
    assert gates(api) == {"first": [], "also-held": ["example.com/quota"], "late": []}


def test_without_a_configuration_and_with_another_pod_of_the_name() -> None:
    api = FakeApi()
    api.put(PODS, gated("pod"))
    api.faults.refuse(Invalid("metadata.uid is immutable", status=422), "patch")
    assert lift_gates(api, lambda _: None) == 1
