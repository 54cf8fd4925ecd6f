"""A publisher at work on a real API server, and an administrator's look at what it published."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import cast

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.slices.publisher import SlicePublisher
from dra_driver.agent.slices.slices import SliceForm, own_slices
from dra_driver.kube.api import Api
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver
from tests.control_plane.objects import whole
from tests.control_plane.tapped import Tapped


def timeless(published: Object) -> Object:
    """The spec, without the time that the server adds to taints."""
    spec: Object = deepcopy(published["spec"])
    for device in spec["devices"]:
        for taint in device.get("taints", ()):
            del taint["timeAdded"]
    return spec


class Rig:
    """A publisher of one node, and an administrator's look at what it published."""

    def __init__(
        self,
        api: Client,
        admin: Client,
        node: str,
        devices: Sequence[Object],
        *,
        form: SliceForm = SliceForm.VISIBLE,
    ) -> None:
        self.client = api
        self.tapped = Tapped(api)
        self.devices: Sequence[Object] | None = devices
        self.node = node
        self.admin = admin
        self._form = form
        self._started: list[SlicePublisher] = []

    def start(self) -> SlicePublisher:
        publisher = self.made()
        publisher.start()
        self._started.append(publisher)
        return publisher

    def made(self) -> SlicePublisher:
        """A publisher that was not started."""
        api = cast("Api", self.tapped)
        return SlicePublisher(api, self.node, devices=self._devices, form=self._form)

    def stop(self) -> None:
        for publisher in self._started:
            publisher.stop(5.0)
        self._started.clear()

    def slices(self) -> tuple[Object, ...]:
        """Those of its form."""
        selector = own_slices(self.node, self._form)
        return self.admin.list(RESOURCE_SLICES, field_selector=selector).items

    def shown(self) -> list[tuple[int, int]]:
        """Generation and number of devices of each slice, in the order of their names; empty
        unless all of the pool is there."""
        found = sorted(self.slices(), key=lambda each: str(each["metadata"]["name"]))
        specs = [each["spec"] for each in found]
        if {spec["pool"]["resourceSliceCount"] for spec in specs} != {len(specs)}:
            return []
        return [(spec["pool"]["generation"], len(spec.get("devices", ()))) for spec in specs]

    def wait(self, *shown: tuple[int, int]) -> tuple[Object, ...]:
        """The slices, once they are so."""
        wait_until(
            lambda: self.shown() == list(shown), PATIENCE, f"slices {shown}", seen=self._seen
        )
        return self.slices()

    def wait_problem(self, publisher: SlicePublisher, text: str) -> None:
        def told() -> bool:
            return text in str(publisher.problem)

        wait_until(told, PATIENCE, f"the problem {text!r}", seen=lambda: str(publisher.problem))

    def _seen(self) -> str:
        return f"{self.shown()}, problems {[each.problem for each in self._started]}"

    def _devices(self, _: Devices) -> Devices | None:
        if self.devices is None:
            return None
        return sorted(self.devices, key=lambda each: str(each["name"]))


@contextmanager
def publishing_node(cluster: Cluster, admin: Client) -> Iterator[str]:
    """The name of a Node that is deleted in the end, and its slices before it."""
    name = f"publishing-{secrets.token_hex(3)}"
    cluster.add_node_object(name)
    try:
        yield name
    finally:
        for each in admin.list(RESOURCE_SLICES, field_selector=own_slices(name)).items:
            admin.delete(RESOURCE_SLICES, each["metadata"]["name"])
        admin.delete(NODES, name)


@contextmanager
def agents_rig(driver: Driver, admin: Client, node: str, folder: Path) -> Iterator[Rig]:
    """With two cards; the account is that of an agent's pod on the node."""
    kubeconfig = driver.kubeconfig("agent", folder, node=node)
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    rig = Rig(client, admin, node, [whole(1), whole(2)])
    try:
        yield rig
    finally:
        rig.stop()
        client.close()
