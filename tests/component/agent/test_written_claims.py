"""Claims that others write and delete while a whole agent has them, on the fake API server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from dra_driver.kube.api import PatchType
from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.names import TAINT_HELD
from tests.cluster.waiting import wait_until
from tests.fake_api.api import FakeApi
from tests.unit.agent.node import Claims, Node
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager
from tests.unit.node.world import NODE, claim, result

PATIENCE = 30.0
MADE = claim("one", result(0))
ONE = ClaimRef.of(MADE)
USERS = [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in ("a", "b")]


@pytest.fixture
def api() -> FakeApi:
    return FakeApi((NODES, {"metadata": {"name": NODE, "uid": "1"}}), (RESOURCE_CLAIMS, MADE))


class Applying:
    """An agent's client of the server. An apply is a merge: of an agent it has the whole list
    ``status.devices``, and no version, so it conflicts with no other writer."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api.client("gcu-dra-agent/1")

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.api, verb)

    def patch(self, resource: Resource, name: str, body: Object, **how: Any) -> Object:
        if how.pop("patch_type", PatchType.MERGE) is PatchType.APPLY:
            del how["field_manager"]
        return self.api.patch(resource, name, body, **how)


class Storm(Applying):
    """Each claim that the agent reads is written by kube-controller-manager before the agent can
    write it (kubernetes#141274)."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(api)
        self._manager = api.client("kube-controller-manager/1")
        self._counts = itertools.count()

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        read = self.api.get(resource, name, namespace=namespace)
        if resource is RESOURCE_CLAIMS:
            users = {"reservedFor": USERS[: 1 + next(self._counts) % 2]}
            self._manager.patch(
                resource, name, {"status": users}, namespace=namespace, subresource="status"
            )
        return read


def test_a_claim_in_a_storm_of_writes_is_prepared_reported_and_unprepared(
    node: Node, api: FakeApi
) -> None:
    node.api = cast("Claims", Storm(api))
    agent = node.started()
    prepared = [each.device_name for each in node.prepare(ONE).devices]
    assert prepared == ["whole-0000-0d-00-0"]

    def reported() -> list[str]:
        [held] = api.all(RESOURCE_CLAIMS)
        return [str(each["device"]) for each in held["status"].get("devices") or ()]

    wait_until(lambda: reported() == prepared, PATIENCE, "the device in the claim's status")
    assert agent.live() is None
    assert (node.unprepare(ONE).error, node.files()) == ("", {})


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
def test_the_card_of_a_deleted_claim_is_tainted_until_the_kubelet_has_unprepared_it(
    node: Node, api: FakeApi
) -> None:
    """It was deleted by force while its containers run. A claim that was given its card meanwhile
    is prepared in the same call of the kubelet."""
    node.api = cast("Claims", Applying(api))
    node.started()
    fake_kubelet.notify(node.sockets.registration, registered=True)
    node.prepare(ONE)
    api.remove(RESOURCE_CLAIMS, "one", "team")
    new = claim("two", result(0))
    api.put(RESOURCE_CLAIMS, new)
    with ThreadPoolExecutor(1) as call:
        answer = call.submit(node.prepare, ClaimRef.of(new))
        wait_until(lambda: held_cards(api) == {"0000-0d-00-0"}, PATIENCE, "the taint on the card")
        assert not answer.done()
        node.unprepare(ONE)
        assert answer.result(PATIENCE).error == ""
    wait_until(lambda: not held_cards(api), PATIENCE, "no taint")
