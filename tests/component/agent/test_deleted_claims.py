"""A claim that is deleted by force while its containers run: its card is kept from others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.names import TAINT_HELD
from tests.cluster.waiting import wait_until
from tests.component.agent.applying import Applying
from tests.fake_api.api import FakeApi
from tests.unit.agent.node import Claims, Node
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager
from tests.unit.node.world import NODE, claim, result

PATIENCE = 30.0


@pytest.fixture
def kubelet(node: Node) -> Iterator[DeviceManager]:
    """Its list of containers is empty: it has forgotten the pod, and ends its containers."""
    kubelet = DeviceManager(node.kubelet)
    kubelet.start()
    yield kubelet
    kubelet.stop()


def held_cards(api: FakeApi) -> set[str]:
    """The cards of the published devices that have the taint."""
    return {
        device["name"].partition("-")[2]
        for each in api.all(RESOURCE_SLICES)
        for device in each["spec"].get("devices") or ()
        if any(taint["key"] == TAINT_HELD for taint in device.get("taints") or ())
    }


@pytest.mark.usefixtures("kubelet")
def test_the_card_is_tainted_until_the_kubelet_has_unprepared_the_claim(node: Node) -> None:
    """A claim that was given it meanwhile is prepared in the same call of the kubelet."""
    made, new = claim("one", result(0)), claim("two", result(0))
    api = FakeApi((NODES, {"metadata": {"name": NODE, "uid": "1"}}), (RESOURCE_CLAIMS, made))
    node.api = cast("Claims", Applying(api))
    node.started()
    fake_kubelet.notify(node.sockets.registration, registered=True)
    one, two = ClaimRef.of(made), ClaimRef.of(new)
    node.prepare(one)
    api.remove(RESOURCE_CLAIMS, "one", "team")
    api.put(RESOURCE_CLAIMS, new)
    with ThreadPoolExecutor(1) as call:
        answer = call.submit(node.prepare, two)
        wait_until(lambda: held_cards(api) == {"0000-0d-00-0"}, PATIENCE, "the taint on the card")
        assert not answer.done()
        node.unprepare(one)
        assert answer.result(PATIENCE).error == ""
    wait_until(lambda: not held_cards(api), PATIENCE, "no taint")
