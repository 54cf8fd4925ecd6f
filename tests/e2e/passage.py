"""Pods of the passage through what users do, which ask for GCUs by claims or by limits."""

from __future__ import annotations

from typing import Any, Protocol

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.claim import results
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_PART, DRIVER
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import RELEASE, Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.seen import assert_sees_what_was_granted
from tests.e2e.without_dra import OldInstallation, asking

NAMESPACE = "passage"
SCOPE = f"--namespace={NAMESPACE}"
SYSTEM = f"--namespace={DRIVER_NAMESPACE}"

Object = dict[str, Any]


class Workloads(Protocol):
    """How users of a cluster ask for GCUs."""

    @property
    def driver(self) -> Installation: ...

    def make(self, name: str, mode: Mode, amount: int | None) -> list[Object]:
        """A pod of that name, and what it needs."""

    def cards(self, pod: Object) -> list[str]:
        """PCI addresses of what the running pod has. Raises AssertionError if it sees others."""


class ByClaims:
    """ResourceClaims."""

    def __init__(self, driver: Installation) -> None:
        self.driver = driver

    def make(self, name: str, mode: Mode, amount: int | None) -> list[Object]:
        wanted = claim_in(mode, name, NAMESPACE, amount)
        return [wanted, pod_with(name, NAMESPACE, nodeSelector=_second_node(self.driver))]

    def cards(self, pod: Object) -> list[str]:
        assert_sees_what_was_granted(self.driver, pod)
        cluster = self.driver.cluster
        [used] = pod["spec"]["resourceClaims"]
        found = results(cluster.get("resourceclaim", used["resourceClaimName"], SCOPE))
        return [str(parse_device_name(each.device)[1]) for each in found]


class ByLimits:
    """The vendor's limits, through the device plugin."""

    def __init__(self, driver: OldInstallation) -> None:
        self.driver = driver
        self._old = driver

    def make(self, name: str, mode: Mode, amount: int | None) -> list[Object]:
        limits = {RESOURCES[mode]: amount or 1}
        return [asking(name, NAMESPACE, limits, nodeSelector=_second_node(self.driver))]

    def cards(self, pod: Object) -> list[str]:
        self._old.assert_has_what_it_asks(pod)
        return [card for held in self._old.told(pod).values() for card, _ in held]


def _second_node(driver: Installation) -> dict[str, str]:
    return {"kubernetes.io/hostname": driver.cluster.nodes[1].name}


class Passage:
    """Pods in a namespace of their own."""

    def __init__(self, workloads: Workloads) -> None:
        self.workloads = workloads
        self.driver = workloads.driver
        self.cluster = workloads.driver.cluster

    def start(self, name: str, mode: Mode, amount: int | None = None) -> None:
        self.cluster.apply(*self.workloads.make(name, mode, amount))

    def run(self, name: str, mode: Mode, amount: int | None = None) -> list[str]:
        """Start a pod; returns the cards that it has."""
        self.start(name, mode, amount)
        return self.wait_for(name)

    def measured(self, name: str, **measures: object) -> tuple[list[str], dict[str, str]]:
        """Start a pod whose claim asks by memory and compute; returns the cards that it has, and
        what it was granted of them."""
        made = claim_in(Mode.SHARED, name, NAMESPACE)
        made["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = CLASS_PART
        parameters = {"apiVersion": API_VERSION, "kind": KIND, **measures}
        made["spec"]["devices"]["config"] = [
            {"opaque": {"driver": DRIVER, "parameters": parameters}}
        ]
        pod = pod_with(name, NAMESPACE, nodeSelector=_second_node(self.driver))
        self.cluster.apply(made, pod)
        cards = self.wait_for(name)
        [granted] = results(self.cluster.get("resourceclaim", name, SCOPE))
        return cards, dict(granted.consumed)

    def wait_for(self, name: str) -> list[str]:
        """Return when the pod runs, with the cards that it has."""
        wait_for_pods(self.cluster, NAMESPACE, name)
        return self.workloads.cards(self.cluster.get("pod", name, SCOPE))

    def waits(self, *names: str) -> None:
        """Return when each pod has an event that says why it waits; none is bound."""
        for name in names:
            wait_until(lambda: self._reasons(name), PATIENCE, f"a reason why {name} waits")  # noqa: B023
            assert "nodeName" not in self.cluster.get("pod", name, SCOPE)["spec"]

    def end(self, *names: str) -> None:
        self.cluster.delete_pods(NAMESPACE, *names)
        if self.cluster.release.dra:
            self.cluster.kubectl("delete", "resourceclaim", *names, SCOPE, "--ignore-not-found")

    def kill(self, component: str) -> None:
        """All pods of agent or controller, at once."""
        selector = f"--selector=app.kubernetes.io/component={component}"
        self.cluster.kubectl("delete", "pods", selector, SYSTEM, "--grace-period=0", "--force")

    def wait_for_controllers(self) -> None:
        """Return when all controllers are ready. Until then the API server refuses claims and
        pods for which their webhook must answer (`failurePolicy: Fail`)."""
        self.cluster.wait("rollout", "status", SYSTEM, f"deployment/{RELEASE}-controller")

    def _reasons(self, name: str) -> list[str]:
        events = self.cluster.get("events", SCOPE)["items"]
        return [
            each["message"]
            for each in events
            if each["involvedObject"]["name"] == name
            and each["reason"] in {"GcuAllocationFailed", "FailedScheduling"}
        ]
