"""What our client lists in pages while it follows a kind."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dra_driver.kube.api import Change
from dra_driver.kube.client import Client
from dra_driver.kube.resources import Resource
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.test_client import CONFIG_MAPS, config_map


class Counted:
    """The client, with the kinds that were listed in pages."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.listed: list[str] = []
        self.watch = client.watch

    def list(self, resource: Resource, **more: object) -> object:
        self.listed.append(resource.plural)
        return self._client.list(resource, **more)  # type: ignore[arg-type]


class Names:
    """A handler that knows the names of what there is, and has what it was told at first."""

    def __init__(self) -> None:
        self.first: set[str] = set()
        self.names: set[str] = set()
        self.listed = threading.Event()

    def on_replace(self, items: Sequence[Object]) -> None:
        self.first = {each["metadata"]["name"] for each in items}
        self.names = set(self.first)
        self.listed.set()

    def on_event(self, change: Change, obj: Object) -> None:
        name = obj["metadata"]["name"]
        (self.names.discard if change is Change.DELETED else self.names.add)(name)


def follow(client: Client, namespace: str) -> list[str]:
    """Follow what there is and what comes; gives what was listed in pages."""
    client.create(CONFIG_MAPS, config_map("before", namespace))
    counted, names = Counted(client), Names()
    reflector = Reflector(
        counted,  # type: ignore[arg-type]
        CONFIG_MAPS,
        names,
        namespace=namespace,
        streamed=True,
    )
    reflector.start()
    try:
        assert names.listed.wait(PATIENCE)
        assert "before" in names.first
        client.create(CONFIG_MAPS, config_map("after", namespace))
        wait_until(lambda: "after" in names.names, PATIENCE, "the watch goes on after the list")
        client.delete(CONFIG_MAPS, "before", namespace=namespace)
        wait_until(lambda: "before" not in names.names, PATIENCE, "the deletion is told")
    finally:
        reflector.stop(PATIENCE)
    return counted.listed
