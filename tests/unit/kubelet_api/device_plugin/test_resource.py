"""One resource over real unix sockets, met by the kubelet's device manager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dra_driver.kubelet_api.device_plugin.service import ContainerEdits, ListedDevice
from dra_driver.kubelet_api.device_plugin.serving import ResourceServer
from dra_driver.kubelet_api.sockets import Folders
from dra_driver.model.card import DeviceNode
from dra_driver.model.effects import Point
from dra_driver.model.errors import GcuError, Refused
from tests.unit.kubelet_api.callers import Passing
from tests.unit.kubelet_api.device_plugin.device_manager import AdmissionError, DeviceManager
from tests.unit.kubelet_api.fake_kubelet import until_nobody_listens

RESOURCE = "enflame.com/gcu"


@dataclass
class Handler:
    listed: list[ListedDevice] = field(default_factory=lambda: [ListedDevice("a", numa_node=1)])
    answer: ContainerEdits | GcuError = field(default_factory=ContainerEdits)
    asked: list[list[str]] = field(default_factory=list)

    def devices(self) -> Sequence[ListedDevice]:
        return list(self.listed)

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        return sorted(available)[:size]

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        self.asked.append(list(ids))
        if isinstance(self.answer, GcuError):
            raise self.answer
        return self.answer


class Plugin:
    """A resource that is served, to a kubelet in the same folder."""

    def __init__(self, root: Path) -> None:
        self.kubelet = DeviceManager(root)
        self.handler = Handler()
        self.effects = Passing()
        self.now = 0.0
        self.socket = self.kubelet.folders.socket(RESOURCE)
        self.server = ResourceServer(
            RESOURCE,
            self.handler,
            socket=self.socket,
            kubelet=self.kubelet.folders.kubelet,
            effects=self.effects,
            clock=lambda: self.now,
        )

    def meet(self) -> None:
        """Register, and wait until the kubelet has a list."""
        known = len(self.kubelet.registered)
        self.server.check()
        assert len(self.kubelet.registered) == known + 1
        self.kubelet.until(self.is_known, "no list came")
        self.server.check()

    def problem(self) -> str:
        return self.server.problem or ""

    def is_known(self) -> bool:
        endpoint = self.kubelet.endpoints.get(RESOURCE)
        return endpoint is not None and endpoint.lists > 0 and not endpoint.lost


@pytest.fixture
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    made = Plugin(tmp_path_factory.mktemp("k"))  # a short path
    made.kubelet.start()
    made.server.serve()
    yield made
    made.server.stop(0)
    made.kubelet.stop()


def test_the_kubelet_is_told_who_is_there(plugin: Plugin) -> None:
    assert "not registered" in plugin.problem()
    plugin.meet()
    [request] = plugin.kubelet.registered
    assert (request.version, request.resource_name) == ("v1beta1", RESOURCE)
    assert request.endpoint == plugin.socket.name
    assert request.options.get_preferred_allocation_available
    assert plugin.server.problem is None
    assert plugin.server.broadcaster.listeners
    assert Point.PLUGIN_REGISTER in plugin.effects.seen
    [device] = plugin.kubelet.endpoints[RESOURCE].devices.values()
    assert [node.ID for node in device.topology.nodes] == [1]
    plugin.server.check()
    assert len(plugin.kubelet.registered) == 1


def test_the_kubelet_is_told_now_and_then_what_changed_by_itself(plugin: Plugin) -> None:
    assert plugin.server.broadcaster._resend == 60.0
    plugin.server.broadcaster._resend = 0.05
    plugin.meet()
    plugin.handler.listed = [ListedDevice("b")]
    plugin.kubelet.until(lambda: plugin.kubelet.ids(RESOURCE) == ["b"], "the change was not told")


def test_the_kubelet_is_told_at_once_what_changed(plugin: Plugin) -> None:
    plugin.meet()
    plugin.handler.listed = [ListedDevice("a", healthy=False), ListedDevice("b")]
    plugin.server.broadcaster.wake()
    plugin.kubelet.until(lambda: plugin.kubelet.ids(RESOURCE) == ["b"], "the change was not told")
    assert plugin.kubelet.ids(RESOURCE, healthy=False) == ["a"]
    assert not plugin.kubelet.endpoints[RESOURCE].devices["b"].topology.nodes


def test_what_a_container_is_told(plugin: Plugin) -> None:
    plugin.meet()
    plugin.handler.answer = ContainerEdits(
        {"VARIABLE": "value"},
        (DeviceNode("/dev/gcu0", "/host/dev/gcu0"),),
        ("gcu.enflame.com/claim=x",),
    )
    answer = plugin.kubelet.admit("pod", "main", RESOURCE, 1)
    assert plugin.handler.asked == [["a"]]
    assert dict(answer.envs) == {"VARIABLE": "value"}
    [node] = answer.devices
    assert (node.container_path, node.host_path, node.permissions) == (
        "/dev/gcu0",
        "/host/dev/gcu0",
        "rw",
    )
    assert [device.name for device in answer.cdi_devices] == ["gcu.enflame.com/claim=x"]
    assert Point.REPLY_ALLOCATE in plugin.effects.seen


def test_a_refusal_reaches_the_pod_in_words(plugin: Plugin) -> None:
    plugin.meet()
    plugin.handler.answer = Refused("no", remedy="ask for less")
    with pytest.raises(AdmissionError, match=r"FAILED_PRECONDITION: no; ask for less"):
        plugin.kubelet.admit("pod", "main", RESOURCE, 1)
    assert Point.REPLY_ALLOCATE not in plugin.effects.seen


def test_a_kubelet_that_starts_anew_is_told_again(plugin: Plugin) -> None:
    plugin.meet()
    plugin.kubelet.stop()
    plugin.kubelet.start()
    assert not plugin.socket.exists()
    plugin.meet()
    assert plugin.kubelet.ids(RESOURCE) == ["a"]


def test_a_lost_stream_is_mended_when_time_has_shown_it(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When an older agent ends, the kubelet drops the resource, and this agent registers again.
    The next stream may take a moment."""
    plugin.meet()
    plugin.kubelet.endpoints[RESOURCE].channel.close()
    plugin.kubelet.until(lambda: plugin.kubelet.endpoints[RESOURCE].lost, "the stream goes on")
    until_nobody_listens(plugin.server.broadcaster)
    plugin.server.check()
    assert len(plugin.kubelet.registered) == 1
    plugin.now = 5.0
    with monkeypatch.context() as deaf:
        deaf.setattr(plugin.kubelet, "_follow", lambda *_: None)
        plugin.server.check()
        assert len(plugin.kubelet.registered) == 2
        assert (plugin.problem(), caplog.messages) == ("", [])
        plugin.now = 10.0
        plugin.server.check()
        assert "does not ask for its devices" in plugin.problem()
    plugin.now = 15.0
    plugin.meet()
    assert plugin.problem() == ""


def test_a_kubelet_that_never_asks_for_the_devices_is_a_problem(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin.kubelet, "_follow", lambda *_: None)
    plugin.server.check()
    assert plugin.problem() == ""
    plugin.now = 5.0
    plugin.server.check()
    assert "does not ask for its devices" in plugin.problem()


def stop_the_kubelet(plugin: Plugin) -> None:
    plugin.kubelet.stop()
    plugin.kubelet.folders.kubelet.unlink(missing_ok=True)


def leave_a_dead_socket(plugin: Plugin) -> None:
    stop_the_kubelet(plugin)
    plugin.kubelet.folders.kubelet.touch()


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        pytest.param(stop_the_kubelet, "the kubelet does not serve", id="no kubelet"),
        pytest.param(leave_a_dead_socket, "the kubelet did not take", id="a dead one"),
    ],
)
def test_why_the_kubelet_does_not_know_of_us(
    plugin: Plugin, trouble: Callable[[Plugin], None], words: str
) -> None:
    trouble(plugin)
    plugin.server.check()
    assert words in plugin.problem()
    plugin.kubelet.start()
    plugin.meet()
    assert plugin.server.problem is None


def test_what_is_in_the_way_of_its_socket_is_told(plugin: Plugin) -> None:
    plugin.server.stop(0)
    plugin.socket.touch()
    plugin.server.check()
    assert "enflame.com/gcu is not served" in plugin.problem()
    assert "in the way" in plugin.problem()
    plugin.socket.unlink()
    plugin.server.check()
    assert plugin.problem() == ""


def test_each_pod_of_ours_has_its_own_sockets() -> None:
    folders = [Folders.of(Path("/var/lib/kubelet"), uid) for uid in ("", "one", "two")]
    names = ("enflame.com/gcu", "enflame.com/shared-gcu", "enflame.com/gcu-count")
    paths = {each.socket(name) for name in names for each in folders}
    assert len(paths) == 9
