"""The extender as a whole: when it serves, by which threads it lives, that it always ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.extender.binder import Binder
from controller.extender.extender import Extender
from controller.settings import ControllerSettings
from dra_driver.kube import watch
from dra_driver.kube.api import Listing
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import LEASES, NODES, PODS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import CardKind
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import SCHEDULING_GATE
from dra_driver.util.backoff import Backoff
from tests.cluster.pki import Authority
from tests.fake_api.api import FakeApi
from tests.unit.controller.extender.build import SHARED, address, card, hold, node, pod

HOLDER = pod("a", {SHARED: 4}, on="n", cards=str(address(1)))


class SmallCluster(FakeApi):
    """One node, and one pod that has slices there; `away` makes every list of pods and every read
    of the lease fail, and `lists` counts the lists, without those of agents."""

    def __init__(self) -> None:
        super().__init__((NODES, node("n", card(1, Mode.SHARED, hold("a", 4)))), (PODS, HOLDER))
        self.away = False
        self.after_list: Callable[[], object] = lambda: None
        self.lists = 0

    @property
    def told(self) -> Object:
        """The annotations that the pod was given."""
        [found] = self.all(PODS)
        annotations: Object = found["metadata"]["annotations"]
        given = annotations.keys() - HOLDER["metadata"]["annotations"].keys()
        return {key: annotations[key] for key in given}

    def get(self, resource: Resource, name: str, **how: Any) -> Object:
        if resource is LEASES and self.away:
            raise Unavailable("the API server did not answer")
        return super().get(resource, name, **how)

    def list(self, resource: Resource, *, label_selector: str = "", **how: Any) -> Listing:
        if resource != PODS or label_selector:
            return super().list(resource, label_selector=label_selector, **how)
        self.lists += 1
        if self.away:
            raise Unavailable("the API server did not answer")
        listing = super().list(resource, **how)
        self.after_list()
        return listing


@pytest.fixture
def settings(tmp_path: Path) -> ControllerSettings:
    authority = Authority(tmp_path)
    pair = authority.server("extender", (IPv4Address("127.0.0.1"),), ())
    return ControllerSettings(
        extender_port=0,
        extender_certificate=pair.certificate,
        extender_key=pair.key,
        extender_client_authority=authority.certificate,
    )


def made(settings: ControllerSettings, cluster: SmallCluster) -> Extender:
    return Extender(settings, cluster, CollectorRegistry(), identity="one")


def within_a_minute(holds: Callable[[], Any]) -> bool:
    end = time.monotonic() + 60
    pause = threading.Event()
    while not holds():
        if time.monotonic() > end:
            return False
        pause.wait(0.02)
    return True


def test_it_serves_once_it_knows_and_leads(settings: ControllerSettings) -> None:
    extender = made(settings, SmallCluster())
    assert extender.ready() == "gcu-dra-controller has not read all nodes and pods yet"
    assert extender.live() == "the server ended"
    extender.start()
    try:
        assert within_a_minute(lambda: extender.ready() is None), extender.ready()
        assert extender.live() is None
        assert extender.port > 0
    finally:
        extender.stop(within=2)
    assert "does not hold the lease" in str(extender.ready())


def test_it_lists_at_once_when_the_server_answers_for_its_lease(
    settings: ControllerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its watches waits for hours after a failure."""
    monkeypatch.setattr(watch, "Backoff", partial(Backoff, first=7200.0, longest=7200.0))
    cluster = SmallCluster()
    cluster.away = True
    extender = made(settings.model_copy(update={"lease_retry": 0.1}), cluster)
    extender.start()
    try:
        assert within_a_minute(lambda: cluster.lists)
        cluster.away = False
        assert within_a_minute(lambda: extender.ready() is None), extender.ready()
    finally:
        extender.stop(within=2)


def test_kinds_of_cards_are_known_once_all_nodes_were_read(settings: ControllerSettings) -> None:
    """Before, a model that is missing would make a part too small. Who leads does not matter."""
    extender = made(settings, SmallCluster())
    with pytest.raises(Refused, match="has not read all nodes and pods yet"):
        extender.card_kinds({})
    extender.start()
    try:
        assert within_a_minute(lambda: extender.ready() is None), extender.ready()
        assert list(extender.card_kinds({})) == [CardKind.of(card(1))]
        assert not extender.card_kinds({"example.com/pool": "a"})
    finally:
        extender.stop(within=2)


@pytest.fixture
def by_hand(settings: ControllerSettings, monkeypatch: pytest.MonkeyPatch) -> ControllerSettings:
    """With these it leads from its start, and its threads neither renew the lease nor do the
    periodic work: the test alone opens the fence again, and calls `run_once`."""
    monkeypatch.setattr("controller.extender.extender._INTERVAL", 3600.0)
    times = {"lease_retry": 600.0, "lease_renew_deadline": 700.0, "lease_duration": 800.0}
    return settings.model_copy(update=times)


def lead(extender: Extender) -> None:
    """Start it, and accept its first term."""
    extender.start()
    assert within_a_minute(lambda: extender._is_synced() and extender._fence.is_open())
    extender.run_once()
    assert extender.ready() is None


def test_it_takes_over_only_with_the_pods_of_now(by_hand: ControllerSettings) -> None:
    cluster = SmallCluster()
    extender = made(by_hand, cluster)
    try:
        lead(extender)
        extender.run_once()
        assert cluster.lists == 2  # one for the watch, one for the term
        cluster.away = True
        extender._fence.open_until(extender._fence._clock() + 60, "another term")
        extender.run_once()
        assert "does not hold the lease" in str(extender.ready())
        cluster.away = False
        extender.run_once()
        assert extender.ready() is None
    finally:
        extender.stop(within=2)


def test_it_does_nothing_in_a_term_that_it_has_not_accepted(by_hand: ControllerSettings) -> None:
    """It leads before it has read all nodes. A gate from before is there already."""
    cluster = SmallCluster()
    gated = pod("gated", {}) | {"spec": {"schedulingGates": [{"name": SCHEDULING_GATE}]}}
    extender = made(by_hand, cluster)
    extender._leftover_gates.on_replace([cluster.put(PODS, gated)])
    extender._fence.open_until(extender._fence._clock() + 60, "a term")
    extender.run_once()
    assert cluster.get(PODS, "gated", namespace="default")["spec"]["schedulingGates"]


@pytest.mark.parametrize("uncertain", [True, False])
def test_the_next_one_waits_for_a_write_that_may_still_arrive(
    by_hand: ControllerSettings, monkeypatch: pytest.MonkeyPatch, uncertain: bool
) -> None:
    cluster = SmallCluster()
    extender = made(by_hand, cluster)
    lead(extender)
    monkeypatch.setattr(Binder, "has_uncertain", lambda _: uncertain)
    extender.stop(within=2)
    [lease] = cluster.all(LEASES)
    assert bool(lease["spec"].get("holderIdentity")) is uncertain


@pytest.mark.parametrize("deleted", [True, False])
def test_a_pod_that_ended_while_all_were_listed_holds_nothing(
    by_hand: ControllerSettings, deleted: bool
) -> None:
    """Its watch has told, and the list is of before that."""
    cluster = SmallCluster()
    extender = made(by_hand, cluster)
    try:
        lead(extender)
        ended = pod("a", {SHARED: 4}, on="n", cards=str(address(1)), phase="Succeeded")
        view = extender._cluster
        cluster.after_list = (
            (lambda: view.drop_pod("uid-a")) if deleted else (lambda: view.put_pod(ended))
        )
        extender._fence.open_until(extender._fence._clock() + 3600, "another term")
        extender.run_once()
        assert extender._fits(pod("b", {SHARED: 6}), ["n"])
    finally:
        extender.stop(within=2)


@pytest.mark.parametrize(("size", "fits"), [(2, True), (3, False)])
def test_a_place_on_any_node_is_found(settings: ControllerSettings, size: int, fits: bool) -> None:
    extender = made(settings, SmallCluster())
    extender.start()
    try:
        assert within_a_minute(lambda: extender.ready() is None)
        asking = pod("b", {SHARED: size})
        assert extender._fits(asking, None) is extender._fits(asking, ["n"]) is fits
        assert not extender._fits(asking, ["m"])
    finally:
        extender.stop(within=2)


def test_pods_are_told_what_their_node_tells(settings: ControllerSettings) -> None:
    cluster = SmallCluster()
    extender = made(settings, cluster)
    extender.start()
    try:
        assert within_a_minute(lambda: cluster.told), "no pod was written to"
    finally:
        extender.stop(within=2)
    assert cluster.told["enflame.com/gcu-assigned"] == "true"


def test_files_of_the_certificate_must_be_named() -> None:
    with pytest.raises(InvalidValue, match="extender-certificate, extender-key and"):
        made(ControllerSettings(), SmallCluster())


def test_a_gate_from_before_is_lifted(settings: ControllerSettings) -> None:
    cluster = SmallCluster()
    gated = pod("gated", {})
    gated["spec"]["schedulingGates"] = [{"name": SCHEDULING_GATE}]
    cluster.put(PODS, gated)
    extender = made(settings, cluster)
    extender.start()
    try:
        live = partial(cluster.get, PODS, "gated", namespace="default")
        assert within_a_minute(lambda: live()["spec"]["schedulingGates"] == []), live()
    finally:
        extender.stop(within=2)
