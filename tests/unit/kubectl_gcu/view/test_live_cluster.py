"""The page's data of a server that is followed: equal to what `inspect` reads, with any rights."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.errors import Forbidden, Unavailable
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.names import DRIVER
from kubectl_gcu import output
from kubectl_gcu.cluster.state import read_cluster
from kubectl_gcu.inventory.nodes import inventory
from kubectl_gcu.view.live_cluster import Heartbeat, LiveCluster
from tests.browser.fleet import fleet
from tests.cluster.waiting import wait_until
from tests.fake_api.api import KNOWN, FakeApi
from tests.unit.kubectl_gcu.inventory.inspected import BY_LIMITS

_SECONDS: Final = 60.0
_RULE: Final = {
    "metadata": {"name": "drain"},
    "spec": {
        "deviceSelector": {"driver": DRIVER, "pool": f"{DRIVER}/gcu-node-0001"},
        "taint": {"key": "example.com/drain", "effect": "NoExecute"},
    },
}


class Server(FakeApi):
    """`refused` has (verb, kind, namespace), with "" for all namespaces."""

    refused: frozenset[tuple[str, Resource, str]] = frozenset()

    def list(
        self, resource: Resource, *, namespace: str = "", decoder: Decoder = WHOLE, **how: Any
    ) -> Listing:
        self._check("list", resource, namespace)
        return super().list(resource, namespace=namespace, decoder=decoder, **how)

    def watch(self, resource: Resource, *, namespace: str = "", **how: Any) -> Any:
        self._check("watch", resource, namespace)
        return super().watch(resource, namespace=namespace, **how)

    def _check(self, verb: str, resource: Resource, namespace: str) -> None:
        if (verb, resource, namespace) in self.refused:
            raise Forbidden(f"may not {verb} {resource.plural}", status=403)


def server(**more: Any) -> Server:
    objects = [*fleet(3, cards=4), *((NODES, each) for each in BY_LIMITS.nodes)]
    return Server(*objects, (DEVICE_TAINT_RULES, _RULE), **more)


@contextmanager
def following(api: FakeApi, namespace: str = "demo") -> Iterator[LiveCluster]:
    """Ends when everything has been listed."""
    cluster = LiveCluster(api, namespace, lambda: None)
    assert cluster.snapshot().data()["loading"]
    assert cluster.snapshot().nodes == {}
    cluster.start()
    try:
        wait_until(cluster.is_synced, _SECONDS, "synced", interval=0.01)
        yield cluster
    finally:
        cluster.stop()


def of_inspect(api: FakeApi, namespace: str = "demo") -> dict[str, Any]:
    return output.as_data(*inventory(read_cluster(api, namespace)))


def of_page(cluster: LiveCluster) -> dict[str, Any]:
    data = cluster.snapshot().data()
    return {name: data[name] for name in ("nodes", "totals", "largest", "missing")}


def test_a_change_is_shown_as_inspect_shows_it() -> None:
    api = server()
    with following(api) as cluster:
        assert of_page(cluster) == of_inspect(api)
        before = of_page(cluster)
        api.remove(DEVICE_TAINT_RULES, "drain")
        held = next(each for each in api.all(RESOURCE_CLAIMS) if each["status"])
        api.remove(RESOURCE_CLAIMS, held["metadata"]["name"], held["metadata"]["namespace"])
        expected = of_inspect(api)
        assert expected != before
        wait_until(lambda: of_page(cluster) == expected, _SECONDS, "the change", interval=0.01)


_RIGHTS: Final = {
    "all": (),
    "no slices": [(RESOURCE_SLICES, "")],
    "no nodes and no rules": [
        (NODES, ""),
        (DEVICE_TAINT_RULES, ""),
        (DEVICE_TAINT_RULES_V1BETA2, ""),
    ],
    "one namespace": [(RESOURCE_CLAIMS, ""), (PODS, "")],
    "no pods": [(PODS, ""), (PODS, "demo")],
}


@pytest.mark.parametrize("refused", _RIGHTS.values(), ids=_RIGHTS)
def test_without_a_right_it_shows_what_inspect_shows(refused: list[tuple[Resource, str]]) -> None:
    api = server()
    api.refused = frozenset(("list", *each) for each in refused)
    with following(api) as cluster:
        shown = of_page(cluster)
        assert sorted(shown.pop("missing")) == sorted((known := of_inspect(api)).pop("missing"))
        assert shown == known
        assert cluster.problem() == ""
        assert bool(refused) == bool(cluster.snapshot().sections["missing"])


def test_a_server_without_dra_is_not_asked_for_its_kinds() -> None:
    served = KNOWN - {RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES, DEVICE_TAINT_RULES}
    api = server(served=served, release=ServerVersion(1, 33, "v1.33.0"))
    api.refused = frozenset(("list", each, "") for each in KNOWN - served)
    with following(api) as cluster:
        assert of_page(cluster) == of_inspect(api)
        assert [each["name"] for each in of_page(cluster)["nodes"]] == ["b"]


def test_rights_of_the_page_alone_are_notices() -> None:
    api = server(served=KNOWN)
    api.refused = frozenset(("list", each, "") for each in (DEVICE_CLASSES, POD_GROUPS))
    api.served = KNOWN - {POD_GROUPS}
    api.refused |= {("list", POD_GROUPS, "demo")}
    with following(api) as cluster:
        classes, *_ = cluster.snapshot().sections["notices"]
        assert classes.startswith("you may not list deviceclasses: pods that wait")
        assert cluster.snapshot().sections["missing"] == []


def test_a_kind_that_may_be_listed_and_not_watched() -> None:
    api = server()
    api.refused = frozenset({("watch", PODS, "")})
    with following(api) as cluster:
        [notice] = wait_until(
            lambda: cluster.snapshot().sections["notices"], _SECONDS, "a notice", interval=0.01
        )
        assert notice == "you may not watch pods: they are listed again now and then"


def test_a_lost_server_is_said_and_comes_back() -> None:
    api = server()
    with following(api.client("view")) as cluster:
        with api.faults.away("view"):
            api.store.expire()
            for watch in cluster._reflectors():
                watch.reconnect()
            wait_until(cluster.problem, _SECONDS, "a problem", interval=0.01)
            assert "no answer" in cluster.snapshot().sections["lost"]
            assert of_page(cluster)["nodes"] == of_inspect(api)["nodes"]
        wait_until(lambda: not cluster.problem(), _SECONDS, "no problem", interval=0.01)
        assert of_page(cluster) == of_inspect(api)


def test_a_heartbeat_says_when_the_server_is_lost_and_when_it_is_back() -> None:
    """A watch alone does not notice a connection that broke without a word."""

    class Mute(FakeApi):
        is_mute = False

        def server_version(self) -> ServerVersion:
            if self.is_mute:
                raise Unavailable("no answer")
            return super().server_version()

    api = Mute()
    changes: list[bool] = []

    def on_beat(*, is_back: bool) -> None:
        changes.append(is_back)

    beat = Heartbeat(api, on_beat)
    seen = []
    for api.is_mute in (False, True, True, False, False):
        beat.beat()
        seen.append((beat.problem, list(changes)))
    assert seen == [
        ("", []),
        ("no answer", [False]),
        ("no answer", [False]),
        ("", [False, True]),
        ("", [False, True]),
    ]


def test_waiting_pods_and_what_they_ask_for() -> None:
    with following(server()) as cluster:
        sections = cluster.snapshot().sections
        assert sections["groups"] == []
        assert [each["name"] for each in sections["waiting"]] == [
            f"pending-{number}" for number in (4, 5, 3, 0, 2, 1)
        ]
        first = sections["waiting"][1]  # of equally urgent ones the first by namespace
        assert first["asks"] == "1 of shared-gcu.enflame.com"
        assert (first["next"], first["node"]) == ("the allocator", "")


def test_stopping_ends_its_threads() -> None:
    before = threading.active_count()
    with following(server()):
        assert threading.active_count() > before
    wait_until(lambda: threading.active_count() <= before, _SECONDS, "no thread", interval=0.01)
