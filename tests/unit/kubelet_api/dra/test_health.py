"""The health streams over real unix sockets, heard by the kubelet's half of the protocol."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kubelet_api.broadcaster import STREAMS, Broadcaster
from dra_driver.kubelet_api.dra import health_service
from dra_driver.kubelet_api.dra import service as service_v1
from dra_driver.kubelet_api.dra.health_service import DeviceHealth, Health
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.kubelet_api.server import UnixServer
from dra_driver.model.effects import Effects
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.callers import Observer
from tests.unit.kubelet_api.dra.handler import Handler

TOP = Path(__file__).parents[4]
POOL = "gcu.enflame.com/node"
GOOD = DeviceHealth(POOL, "whole-0000-0d-00-0", Health.HEALTHY, updated=1_700_000_000)
BAD = DeviceHealth(POOL, "whole-0000-0e-00-0", Health.UNHEALTHY, 1_700_000_060, "card lost")
UNSURE = DeviceHealth(POOL, "whole-0000-0f-00-0", Health.UNKNOWN, 0, "efsmi is missing")
LONG = 3600.0

Watch = Callable[[Path], AbstractContextManager[Iterator[Any]]]


class Node:
    """A server with the feed, and one thread that answers prepare."""

    def __init__(self, folder: Path, *, resend: float = LONG) -> None:
        self.path = folder / "dra.sock"
        self.devices: list[DeviceHealth] = [GOOD]
        self.feed: Broadcaster[Sequence[DeviceHealth]] = Broadcaster(
            lambda: list(self.devices), resend=resend
        )
        self.server = UnixServer(
            self.path, self._services(), threads=1 + STREAMS, effects=Effects()
        )
        self.server.start()

    def stop(self, grace: float = 1.0) -> None:
        self.feed.stop()
        self.server.stop(grace)

    def _services(self) -> dict[RpcService, object]:
        health = health_service.HealthServicer(self.feed)
        return {
            service_v1.SERVICE: service_v1.DraServicer(Handler(), Observer(), Effects()),
            **dict.fromkeys(health_service.SERVICES, health),
        }


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.stop()


def states(message: Any) -> Mapping[str, int]:
    return {each.device.device_name: each.health for each in message.devices}


@pytest.mark.parametrize(
    "watch",
    [
        pytest.param(fake_kubelet.watch_v1, id="v1"),
        pytest.param(fake_kubelet.watch_v1alpha1, id="v1alpha1"),
    ],
)
def test_every_field_is_carried(node: Node, watch: Watch) -> None:
    node.devices = [GOOD, BAD, UNSURE]
    with watch(node.path) as lists:
        good, bad, unsure = next(lists).devices
    assert (good.device.pool_name, good.device.device_name) == (POOL, "whole-0000-0d-00-0")
    assert [each.health for each in (unsure, good, bad)] == [0, 1, 2]
    assert (bad.last_updated_time, bad.message) == (1_700_000_060, "card lost")
    assert {each.health_check_timeout_seconds for each in (good, bad, unsure)} == {30}


def test_a_change_is_told_at_once_and_to_all(node: Node) -> None:
    with (
        fake_kubelet.watch_v1alpha1(node.path) as one,
        fake_kubelet.watch_v1(node.path) as other,
    ):
        assert states(next(one)) == states(next(other)) == {GOOD.device: 1}
        node.devices = [GOOD, BAD]
        node.feed.wake()
        assert states(next(one)) == states(next(other)) == {GOOD.device: 1, BAD.device: 2}
        node.devices = [BAD]
        node.feed.wake()
        assert states(next(one)) == states(next(other)) == {BAD.device: 2}


def test_the_list_is_sent_again_in_time(tmp_path: Path) -> None:
    node = Node(tmp_path, resend=0.05)
    with fake_kubelet.watch_v1alpha1(node.path) as lists:
        assert [states(next(lists)) for _ in range(3)] == [{GOOD.device: 1}] * 3
    node.stop()


def test_it_is_sent_twice_again_before_it_expires() -> None:
    assert 2 * health_service.RESEND < health_service.TIMEOUT


def test_streams_take_no_thread_from_prepare(node: Node) -> None:
    with ExitStack() as open_streams:
        for _ in range(STREAMS):
            next(open_streams.enter_context(fake_kubelet.watch_v1alpha1(node.path)))
        assert fake_kubelet.prepare_v1(node.path).claims == {}
    wait_until_nobody_listens(node)
    with fake_kubelet.watch_v1alpha1(node.path) as lists:
        next(lists)


def test_kubelets_that_were_killed_leave_nothing(node: Node) -> None:
    """Each listened as often as may be at a time."""
    for _ in range(2):
        kubelet = listening(node)
        kubelet.kill()
        kubelet.communicate()
        wait_until_nobody_listens(node)
    with fake_kubelet.watch_v1alpha1(node.path) as lists:
        assert states(next(lists)) == {GOOD.device: 1}


def test_a_stop_ends_the_streams_at_once(node: Node) -> None:
    with (
        fake_kubelet.watch_v1alpha1(node.path) as one,
        fake_kubelet.watch_v1(node.path) as other,
    ):
        next(one)
        next(other)
        stopping = threading.Thread(target=node.stop, args=[LONG])
        stopping.start()
        assert fake_kubelet.rest(one) == fake_kubelet.rest(other) == []
    stopping.join(fake_kubelet.PATIENCE)
    assert not stopping.is_alive()


def test_a_kubelet_that_stands_still_holds_no_stop_up(node: Node) -> None:
    """Lists that nobody takes pile up in the socket until the stream's thread waits there."""
    node.devices = [BAD] * 20_000
    with fake_kubelet.watch_v1alpha1(node.path) as lists:
        next(lists)
        for _ in range(20):
            node.feed.wake()
        stopping = threading.Thread(target=node.stop, args=[0.2])
        stopping.start()
        stopping.join(fake_kubelet.PATIENCE)
        assert not stopping.is_alive()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="as long as the API takes"),
        pytest.param("x" * 1025, "x" * 1021 + "...", id="longer"),
        pytest.param("x" * 1020 + "卡" * 2, "x" * 1020 + "...", id="never half a letter"),
    ],
)
def test_a_message_is_no_longer_than_the_api_takes(message: str, shown: str) -> None:
    assert DeviceHealth(POOL, "d", Health.UNKNOWN, 0, message).cut_message == shown


def listening(node: Node) -> subprocess.Popen[str]:
    """A kubelet's process that has heard of the devices on each of its streams."""
    command = [
        sys.executable,
        "-m",
        "tests.unit.kubelet_api.listener",
        str(node.path),
        f"{STREAMS}",
    ]
    kubelet = subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True)
    assert kubelet.stdout is not None
    assert kubelet.stdout.readline() == "heard\n"
    return kubelet


def wait_until_nobody_listens(node: Node) -> None:
    with node.feed._changed:
        assert node.feed._changed.wait_for(
            lambda: node.feed.listeners == 0, timeout=fake_kubelet.PATIENCE
        )
