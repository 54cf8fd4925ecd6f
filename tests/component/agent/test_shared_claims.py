"""A claim that kube-controller-manager writes without end (kubernetes#141274), and the agent."""

from __future__ import annotations

import itertools
from typing import Final, cast

from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import ClaimRef, Object
from tests.cluster.waiting import wait_until
from tests.component.agent.applying import Applying
from tests.fake_api.api import FakeApi
from tests.unit.agent.node import Claims, Node
from tests.unit.node.world import NODE, claim, result

DEVICE: Final = "whole-0000-0d-00-0"
USERS: Final = [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in ("a", "b")]


class Storm(Applying):
    """Each claim that the agent reads is written by kube-controller-manager before the agent can
    write it."""

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


def test_a_claim_in_a_storm_of_writes_is_prepared_reported_and_unprepared(node: Node) -> None:
    made = claim("both", result(0))
    api = FakeApi((NODES, {"metadata": {"name": NODE}}), (RESOURCE_CLAIMS, made))
    node.api = cast("Claims", Storm(api))
    agent = node.started()
    ref = ClaimRef.of(made)
    reply = node.prepare(ref)
    assert [each.device_name for each in reply.devices] == [DEVICE]

    def reported() -> list[str]:
        [held] = api.all(RESOURCE_CLAIMS)
        return [str(each["device"]) for each in held["status"].get("devices") or ()]

    wait_until(lambda: reported() == [DEVICE], 30, "the device in the claim's status")
    assert agent.live() is None
    ended = node.unprepare(ref)
    assert (ended.error, node.files()) == ("", {})
