"""Lists as streams (WatchList) on real API servers: of a version that has them, and of one that has
not."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence

import pytest

from dra_driver.kube.api import Change
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import Invalid
from dra_driver.kube.resources import Resource
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_dra
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.test_client import CONFIG_MAPS, config_map

pytestmark = pytest.mark.control_plane

NAMESPACE = "default"


@pytest.fixture(scope="module")
def old_api() -> Iterator[Client]:
    version, gates = chosen_without_dra(), {"WatchList": False}  # it is on from 1.34 on
    settings = Settings(f"lists-{os.getpid()}", kubernetes=version, feature_gates=gates)
    found = Cluster.up(settings, owner=own_process())
    client = connect(found.kubeconfig, effects=Effects(), user_agent="tests/1")
    try:
        yield client
    finally:
        client.close()
        found.down()


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


def test_a_server_with_watch_list_streams(api: Client, namespace: str) -> None:
    assert follow(api, namespace) == []


def test_a_server_without_watch_list_refuses_and_lists_in_pages(old_api: Client) -> None:
    with pytest.raises(Invalid, match="sendInitialEvents"):
        old_api.watch(CONFIG_MAPS, resource_version="", initial_events=True)
    assert follow(old_api, NAMESPACE) == [CONFIG_MAPS.plural]
