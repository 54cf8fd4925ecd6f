"""Another program gives the node's cards to pods: nothing new is placed on them meanwhile."""

from __future__ import annotations

import json

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import RESOURCE_WHOLE, TAINT_FOREIGN
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.e2e.events import notes
from tests.e2e.installation import Installation
from tests.e2e.one_card import OneCard

pytestmark = pytest.mark.cluster


def offer(one: OneCard, *, count: int) -> None:
    """As the node says it when a device plugin serves `count` cards, or does no longer."""
    given = {RESOURCE_WHOLE: str(count)}
    patch = json.dumps({"status": {"capacity": given, "allocatable": given}})
    one.cluster.kubectl("patch", "node", one.node.name, "--subresource=status", f"--patch={patch}")


def told(one: OneCard) -> bool:
    found = notes(one.driver, "default", "Node", "GcuCardForeign", one.node.name)
    return any(RESOURCE_WHOLE in note for note in found)


def test_a_device_plugin_on_the_node_is_noticed(driver: Installation, one: OneCard) -> None:
    """At the agent's start, as it asks rarely; its end within a minute."""
    one.run("held", Mode.DRS, 1)
    offer(one, count=1)
    try:
        system = f"--namespace={DRIVER_NAMESPACE}"
        driver.cluster.kubectl("delete", "pod", driver.agent_pod(one.node.name), system)
        driver.wait_for_agents()
        one.wait_until(lambda: one.tainted(TAINT_FOREIGN), "the taint")
        one.apply("new", Mode.DRS, 1)
        one.wait_for_words("new", "GcuAllocationFailed", f"1 tainted {TAINT_FOREIGN}")
        one.wait_until(lambda: told(one), "an event on the Node")
    finally:
        offer(one, count=0)
    one.wait_until(lambda: not one.tainted(TAINT_FOREIGN), "no taint")
    one.wait_for("held", "new")
    one.end("held", "new")
