"""Another device plugin gives the node's cards to pods: nothing new is placed on them meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.e2e.events import notes
from tests.e2e.installation import Installation
from tests.e2e.one_card import OneCard
from tests.e2e.other_plugin import other_plugin

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

# Not one of those that admission turns into a claim.
_RESOURCE = "enflame.com/vgcu"


def has_event(one: OneCard, words: str) -> bool:
    found = notes(one.driver, "default", "Node", "GcuCardForeign", one.node.name)
    return any(words in note for note in found)


def runs(one: OneCard, wanted: dict[str, Any]) -> bool:
    """Whether the pod runs; made again where its node had not heard of the plugin yet."""
    name = wanted["metadata"]["name"]
    found = one.cluster.get("pods", one.scope)["items"]
    phase = next((p["status"]["phase"] for p in found if p["metadata"]["name"] == name), "")
    if phase == "Failed":
        one.end(name)
    if phase in {"", "Failed"}:
        one.cluster.apply(wanted)
    return phase == "Running"


def test_a_device_plugin_and_its_pods_are_noticed(driver: Installation, one: OneCard) -> None:
    one.run("held", Mode.DRS, 1)
    theirs = pod("theirs", one.namespace, nodeName=one.node.name)
    theirs["spec"]["containers"][0]["resources"] = {"limits": {_RESOURCE: "1"}}
    with other_plugin(one.node, _RESOURCE):
        wait_until(lambda: runs(one, theirs), PATIENCE, "their pod", interval=1.0)
        one.wait_until(lambda: one.tainted(TAINT_FOREIGN), "the taint")
        one.apply("new", Mode.DRS, 1)
        one.wait_for_words("new", "GcuAllocationFailed", TAINT_FOREIGN)
        one.wait_until(lambda: has_event(one, _RESOURCE), "an event on the Node")
    one.wait_until(lambda: has_event(one, f"{one.namespace}/theirs"), "an event on their pod")
    assert one.tainted(TAINT_FOREIGN)
    one.end("theirs")
    one.wait_until(lambda: not one.tainted(TAINT_FOREIGN), "no taint")
    one.wait_for("held", "new")
    one.end("held", "new")
