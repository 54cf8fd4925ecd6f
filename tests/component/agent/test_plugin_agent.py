"""The whole agent on a node without DRA."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable

import pytest

from dra_driver.agent.device_plugin import frontend as plugin_front
from dra_driver.agent.lifecycle import serving_mode
from dra_driver.agent.lifecycle.serving_mode import ModeSetting
from dra_driver.kube.api import ServerVersion
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, RESOURCE_COUNT, TAINT_UNHEALTHY
from tests.cluster.waiting import wait_until
from tests.component.agent.old_cluster import Place
from tests.unit.agent.node import CARDS
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.device_plugin.device_manager import AdmissionError
from tests.unit.node.drs_world import overseer, whole

WHOLE, SHARED, DRS = (RESOURCES[mode] for mode in Mode)


def test_an_instance_for_a_pod(place: Place) -> None:
    agent = place.start()
    answer = place.kubelet.admit("a", "main", DRS, 3)
    [name] = [device.name for device in answer.cdi_devices]
    [content] = place.node.files().values()
    assert name.partition("=")[2] in content
    assert "TOPS_VISIBLE_DEVICES=DRS-" in content
    counted = "gcu_agent_request_duration_seconds_count"
    assert agent.registry.get_sample_value(counted, {"operation": "allocate"}) == 1
    place.becomes(1, 6, 12)
    with place.api.written:
        assert place.api.written.wait_for(
            lambda: "uid-a" in place.api.annotations.get(ANNOTATION_CARDS, ""), timeout=20
        )
    assert agent.ready() is None
    assert agent.live() is None
    assert not place.node.sockets.service.exists(), "DRA is served where there is none"


def test_an_agent_without_one_of_its_threads_is_not_alive(place: Place) -> None:
    agent = place.start()
    frontend = agent._device_plugin
    parts: dict[str, Callable[[float], None]] = {
        "plugin-watch": frontend.server.stop,
        "node-annotator": frontend._annotator.stop,
        "reflector-pods": frontend._pods.stop,
    }
    assert agent.live() is None
    for name, end in reversed(parts.items()):
        end(60)
        assert agent.live() == f"the thread {name} ended unexpectedly; see the log"


def test_the_metrics_tell_which_devices_are_unhealthy(place: Place) -> None:
    """As with DRA, so that one alert serves both."""

    def value(name: str, **labels: str) -> float | None:
        return agent.registry.get_sample_value(f"gcu_agent_{name}", labels)

    def counted(health: str) -> dict[Mode, float | None]:
        return {mode: value("devices", mode=mode.value, health=health) for mode in Mode}

    agent = place.start()
    assert counted("healthy") == dict.fromkeys(Mode, 2)
    assert counted("unhealthy") == dict.fromkeys(Mode)
    place.kubelet.admit("a", "main", SHARED, 2)
    assert counted("healthy") == dict.fromkeys(Mode, 2)
    assert value("prepared_devices", mode="shared") == 1
    place.node.machine.set_card(CARDS[1], rma=True)
    agent._cards.refresh()
    assert counted("healthy") == counted("unhealthy") == dict.fromkeys(Mode, 1)
    taint = {"key": TAINT_UNHEALTHY, "value": "rma", "effect": "NoSchedule"}
    assert value("device_taints", **taint) == 3


@pytest.mark.parametrize(
    ("kubelet", "injection"),
    [("v1.28.9", "cdi"), ("v1.30.14", "runtime")],
    ids=["a kubelet that takes no CDI names", "the vendor's runtime"],
)
def test_device_nodes_are_named_to_the_kubelet(place: Place, kubelet: str, injection: str) -> None:
    """With the static CPU manager only these stay accessible (the vendor's --pass-device-specs)."""
    place.api.kubelet = kubelet
    place.node.started(injection=injection)
    place.becomes(2, 12, 12)
    answer = place.kubelet.admit("a", "main", WHOLE, 1)
    assert not answer.cdi_devices
    assert answer.envs["ENFLAME_VISIBLE_DEVICES"] in {"0", "1"}
    assert {device.container_path for device in answer.devices} > {"/dev/gcuctl"}


def test_the_mode_is_reported_once_and_another_one_ends_the_agent(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever started it starts it anew, and then it serves the other way."""
    monkeypatch.setattr(serving_mode, "_CHECK_EVERY", 0.05)
    ended = threading.Event()

    def events() -> list[str]:
        notes = [note for reason, note in place.api.events if reason == "GcuServingModeChosen"]
        return [note.partition(", ")[0] for note in notes]

    agent = place.node.started(on_restart=ended.set, reconcile_interval=0.1)
    old = "GCUs are served by the device plugin: the server is v1.30.14"
    with place.api.written:
        assert place.api.written.wait_for(events, timeout=20)
    assert not ended.wait(0.5)
    assert events() == [old]
    place.api.server, place.api.kubelet = ServerVersion(1, 36, "v1.36.3"), "v1.36.3"
    place.api.serves_dra = True
    assert ended.wait(20)
    with place.api.written:
        assert place.api.written.wait_for(lambda: len(events()) == 2, timeout=20)
    assert events() == [old, "GCUs are served by DRA: the server is v1.36.3"]
    assert agent.live() is None


def test_the_first_list_of_an_agent_that_starts_anew_is_whole(place: Place) -> None:
    place.start()
    place.kubelet.admit("a", "main", SHARED, 2)
    place.node.stop()
    known = len(place.kubelet.registered)
    place.api.asked.clear()
    place.api.answers.clear()
    place.node.agent().start()
    assert place.api.asked.wait(30)
    with place.kubelet.news:
        assert not place.kubelet.news.wait_for(lambda: len(place.kubelet.registered) > known, 0.5)
    place.api.answers.set()
    place.becomes(1, 12, 6)
    assert [len(place.kubelet.endpoints[each].first) for each in RESOURCES.values()] == [1, 12, 6]


def test_what_the_agent_before_gave_is_nobody_elses(place: Place) -> None:
    """The Node tells of it for some seconds more; no pod has anything that would show whose."""
    place.api.allocatable = {WHOLE: "2"}
    agent = place.start()
    assert agent.ready() is None


@pytest.mark.parametrize("hangs", [True, False], ids=["no answer", "an error"])
def test_without_the_api_server_pods_keep_what_they_have(
    place: Place, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    monkeypatch.setattr(plugin_front, "_REGISTER_AFTER", 0.2)
    place.start()
    place.kubelet.admit("a", "main", SHARED, 2)
    place.node.stop()
    place.api.away = not hangs
    if hangs:
        place.api.answers.clear()
    agent = place.node.agent()
    agent.start()
    place.becomes(0, 2, 0)
    with pytest.raises(AdmissionError, match="Available: 0"):
        place.kubelet.admit("b", "main", SHARED, 1)
    assert hangs or "did not answer" in str(agent.ready())
    place.api.away = False
    place.api.answers.set()
    assert agent._startup.done.wait(60), agent.ready()
    place.becomes(1, 12, 6)


@pytest.mark.parametrize("claim", [whole("held", 0), overseer("held", 0)], ids=["held", "seen"])
def test_without_the_api_server_claims_keep_what_they_have_and_can_end(
    place: Place, claim: Object
) -> None:
    """An agent that cannot find out its way serves what is held all the same, and what is seen."""
    place.node.mode = "dra"
    place.node.started()
    ref = place.api.put(claim)
    first = place.node.prepare(ref)
    place.node.stop()
    place.node.mode = "auto"
    place.api.away = True
    place.api.asked.clear()
    agent = place.node.agent()
    agent.start()
    assert place.api.asked.wait(30)
    fake_kubelet.notify(place.node.sockets.registration, registered=True)
    assert place.node.prepare(ref) == first
    assert place.node.files()
    assert (place.node.unprepare(ref).error, place.node.files()) == ("", {})
    assert "did not answer" in str(agent.ready())
    assert agent.live() is None


def test_a_node_that_moves_over_to_dra_lets_old_pods_end(place: Place) -> None:
    place.start()
    place.kubelet.admit("a", "main", SHARED, 2)
    place.node.stop()
    place.node.mode = "dra"
    agent = place.node.started()
    place.becomes(0, 2, 0)
    ref = place.api.add("held", card=0)
    assert "the container with enflame.com/shared-gcu" in place.node.prepare(ref).error
    free = place.api.add("free", card=1)
    assert not place.node.prepare(free).error
    assert agent.live() is None


def test_without_the_plugins_folder_the_agent_reports_that_pods_need_it(place: Place) -> None:
    """As the chart mounts it, in mode dra without the vendor's limits."""
    place.start()
    place.kubelet.admit("a", "main", SHARED, 2)
    place.node.stop()
    place.kubelet.stop()
    shutil.rmtree(place.node.kubelet / "device-plugins")
    place.node.mode = "dra"
    agent = place.node.agent()
    agent.start()
    wait_until(lambda: "is not mounted" in str(agent.ready()), 60, "the reason")
    assert "set the chart's mode to auto until these containers have ended" in str(agent.ready())
    held, free = place.api.add("held", card=0), place.api.add("free", card=1)
    for ref, refused in ((held, True), (free, False)):
        assert bool(place.node.prepare(ref).error) is refused


def test_a_node_that_moves_back_lets_old_claims_end(place: Place) -> None:
    place.node.mode = "dra"
    place.node.started()
    ref = place.api.add("old", card=0)
    place.node.prepare(ref)
    place.node.stop()
    place.node.mode = "device-plugin"
    place.node.started()
    place.becomes(1, 6, 6)
    place.node.unprepare(ref)
    place.becomes(2, 12, 12)


@pytest.mark.parametrize("mode", ["dra", "device-plugin"])
def test_the_cards_are_counted_whichever_way_pods_get_them(place: Place, mode: ModeSetting) -> None:
    place.node.mode = mode
    agent = place.node.started(count_cards=True)
    place.kubelet.until(lambda: len(place.kubelet.ids(RESOURCE_COUNT)) == 2, "not two")
    others = () if mode == "dra" else RESOURCES.values()
    place.kubelet.until(lambda: {*place.kubelet.endpoints} == {RESOURCE_COUNT, *others}, "others")
    assert agent.live() is None
    place.node.stop()
    place.kubelet.until(lambda: not place.kubelet.ids(RESOURCE_COUNT), "still served")
