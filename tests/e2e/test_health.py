"""Pods show how their cards are, devices are tainted meanwhile, and no kubelet complains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.names import CDI_KIND, DRIVER
from dra_driver.model.pci import PciAddress
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim, pod_with
from tests.e2e.seen import assert_sees_what_was_granted, cards

pytestmark = pytest.mark.cluster

# A look at the PCI bus comes every five seconds, and with it whatever else has changed; a query of
# everything, a minute after the last one, would tell it in any case.
_TOLD_SECONDS = 50.0

WELL, UNWELL = "Healthy", "Unhealthy"


class Pod:
    """A running pod with whole cards, on one node."""

    def __init__(self, driver: Installation, namespace: str, name: str, *, count: int = 1) -> None:
        self._driver = driver
        self._scope = f"--namespace={namespace}"
        self._name = name
        driver.cluster.apply(claim(name, namespace, count=count), pod_with(name, namespace))
        wait_for_pods(driver.cluster, namespace, name)
        found = self.read()
        self.node = str(found["spec"]["nodeName"])
        self.cards = sorted(str(card) for card in cards(driver, found))

    def read(self) -> dict[str, Any]:
        return self._driver.cluster.get("pod", self._name, self._scope)

    def health(self) -> dict[str, tuple[str, str]]:
        """By card, its state and message in the container's ``allocatedResourcesStatus``."""
        [container] = self.read()["status"]["containerStatuses"]
        told = container.get("allocatedResourcesStatus", [])
        assert {each["name"] for each in told} <= {"claim:gcu"}
        return {
            str(self._card(each["resourceID"])): (each["health"], each.get("message", ""))
            for status in told
            for each in status["resources"]
        }

    def wait_for_health(self, wanted: Mapping[str, str]) -> None:
        """Return when each card is in its wanted state. Raises WaitTimeout."""
        wait_until(
            lambda: {card: state for card, (state, _) in self.health().items()} == wanted,
            _TOLD_SECONDS,
            f"the health {dict(wanted)} in the pod's status",
            seen=lambda: str(self.health()),
        )

    def wait_for_messages(self, wanted: Mapping[str, str]) -> None:
        """Return when the message of each card has its words, and is empty without words. What is
        seen first is not always the cause: efsmi may miss a card before the PCI bus does. Raises
        WaitTimeout."""

        def are_told() -> bool:
            messages = {card: message for card, (_, message) in self.health().items()}
            return messages.keys() == wanted.keys() and all(
                wanted[card] in message and bool(message) == bool(wanted[card])
                for card, message in messages.items()
            )

        wait_until(
            are_told,
            _TOLD_SECONDS,
            f"the messages {dict(wanted)} in the pod's status",
            seen=lambda: str(self.health()),
        )

    def _card(self, resource: str) -> PciAddress:
        """The card of a CDI device, which is the pod's own."""
        made = self._driver.cluster.get("resourceclaim", self._name, self._scope)
        prefix = f"{CDI_KIND}={made['metadata']['uid']}-"
        assert resource.startswith(prefix)
        return parse_device_name(resource.removeprefix(prefix))[1]


@pytest.fixture(autouse=True)
def all_well(driver: Installation) -> Iterator[None]:
    """Whatever a test does to cards, they are well afterwards."""
    yield
    for machine in map(driver.machine, driver.machines):
        for card in machine.state().cards:
            if card.lost or not card.health:
                machine.set_card(card.bdf, lost=False, health=True)


def unhealthy(driver: Installation, node: str) -> dict[str, str]:
    """By card, the value of its devices' taint, for the node's cards that have it."""
    return {
        device["attributes"]["card"]["string"]: taint["value"]
        for device in driver.devices(node)
        for taint in device.get("taints") or ()
        if taint["key"] == f"{DRIVER}/unhealthy"
    }


def wait_for_taints(driver: Installation, node: str, wanted: Mapping[str, str]) -> None:
    wait_until(
        lambda: unhealthy(driver, node) == wanted,
        _TOLD_SECONDS,
        f"the taints {dict(wanted)}",
        seen=lambda: str(unhealthy(driver, node)),
    )


@pytest.mark.matrix
def test_a_pod_shows_the_health_of_each_of_its_cards(driver: Installation, namespace: str) -> None:
    pod = Pod(driver, namespace, "two", count=2)
    one, other = pod.cards
    machine = driver.machine(pod.node)
    pod.wait_for_health({one: WELL, other: WELL})

    machine.lose_card(other)
    pod.wait_for_health({one: WELL, other: UNWELL})
    pod.wait_for_messages({one: "", other: "gone from the PCI bus"})
    wait_for_taints(driver, pod.node, {other: "lost"})

    machine.set_card(one, health=False)
    machine.restore_card(other)
    pod.wait_for_health({one: UNWELL, other: WELL})
    pod.wait_for_messages({one: "efsmi says Health : False", other: ""})
    wait_for_taints(driver, pod.node, {one: "health"})

    machine.set_card(one, health=True)
    machine.lose_card(other)
    pod.wait_for_health({one: WELL, other: UNWELL})
    machine.restore_card(other)
    pod.wait_for_health({one: WELL, other: WELL})
    wait_for_taints(driver, pod.node, {})


def test_a_kubelet_starts_anew_and_then_the_agent(driver: Installation, namespace: str) -> None:
    """Under a running pod, whose health is told by whoever follows; another pod begins."""
    pod = Pod(driver, namespace, "one")
    [card] = pod.cards
    machine = driver.machine(pod.node)
    machine.lose_card(card)
    pod.wait_for_health({card: UNWELL})
    driver.cluster.node(pod.node).restart_kubelet()
    driver.cluster.wait_ready()
    pod.wait_for_health({card: UNWELL})
    here = {"kubernetes.io/hostname": pod.node}
    driver.cluster.apply(claim("after", namespace), pod_with("after", namespace, nodeSelector=here))
    wait_for_pods(driver.cluster, namespace, "after")
    scope = f"--namespace={DRIVER_NAMESPACE}"
    driver.cluster.kubectl("delete", "pod", driver.agent_pod(pod.node), scope)
    driver.wait_for_agents()
    machine.restore_card(card)
    pod.wait_for_health({card: WELL})
    for name in ("one", "after"):
        found = driver.cluster.get("pod", name, f"--namespace={namespace}")
        assert_sees_what_was_granted(driver, found)
    wait_until(driver.published, PATIENCE, "the cards of all nodes")


def test_no_kubelet_misses_a_service(driver: Installation) -> None:
    for node in driver.cluster.nodes:
        log = driver.cluster.processes.log(node.component("kubelet")).read_text(errors="replace")
        assert "Successfully started WatchResources health stream" in log
        ours = [line for line in log.splitlines() if DRIVER in line]
        assert not [line for line in ours if "Unimplemented" in line]
