"""The health streams over real unix sockets, heard by the kubelet's half of the protocol."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kubelet_api.broadcaster import STREAMS
from dra_driver.kubelet_api.dra import health_service
from dra_driver.kubelet_api.dra.health_service import DeviceHealth, Health
from dra_driver.kubelet_api.dra.plugin import KubeletPlugin
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.kubelet_api.sockets import Sockets
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.callers import Observer
from tests.unit.kubelet_api.dra.handler import Handler

TOP = Path(__file__).parents[4]
POOL = "gcu.enflame.com/node"
GOOD = DeviceHealth(POOL, "whole-0000-0d-00-0", Health.HEALTHY, updated=1_700_000_000)
BAD = DeviceHealth(POOL, "whole-0000-0e-00-0", Health.UNHEALTHY, 1_700_000_060, "card lost")
UNSURE = DeviceHealth(POOL, "whole-0000-0f-00-0", Health.UNKNOWN, 0, "efsmi is missing")
LONG = 3600.0
V1 = health_service.SERVICES[0]


class Node:
    """A plugin of which one thread answers calls, and the devices that it tells of."""

    def __init__(self, root: Path) -> None:
        self.devices: list[DeviceHealth] = [GOOD]
        sockets = Sockets.of(root)
        self.path = sockets.service
        self.plugin = KubeletPlugin(
            Handler(), lambda: list(self.devices), sockets, Observer(), threads=1
        )
        self.feed = self.plugin.broadcaster
        self.plugin.start()


@pytest.fixture
def node(root: Path) -> Iterator[Node]:
    node = Node(root)
    yield node
    node.plugin.stop(1.0)


def states(message: Any) -> Mapping[str, int]:
    return {each.device.device_name: each.health for each in message.devices}


@pytest.mark.parametrize("served", health_service.SERVICES, ids=["v1", "v1alpha1"])
def test_every_field_is_carried(node: Node, served: RpcService) -> None:
    node.devices = [GOOD, BAD, UNSURE]
    with fake_kubelet.watch(node.path, served) as lists:
        good, bad, unsure = next(lists).devices
    assert (good.device.pool_name, good.device.device_name) == (POOL, "whole-0000-0d-00-0")
    assert [each.health for each in (unsure, good, bad)] == [0, 1, 2]
    assert (bad.last_updated_time, bad.message) == (1_700_000_060, "card lost")
    assert {each.health_check_timeout_seconds for each in (good, bad, unsure)} == {30}


def test_a_change_is_told_at_once_and_to_all(node: Node) -> None:
    with (
        fake_kubelet.watch(node.path) as one,
        fake_kubelet.watch(node.path, V1) as other,
    ):
        assert states(next(one)) == states(next(other)) == {GOOD.device: 1}
        node.devices = [GOOD, BAD]
        node.feed.wake()
        assert states(next(one)) == states(next(other)) == {GOOD.device: 1, BAD.device: 2}
        node.devices = [BAD]
        node.feed.wake()
        assert states(next(one)) == states(next(other)) == {BAD.device: 2}


def test_the_list_is_sent_again_in_time(node: Node) -> None:
    node.feed._resend = 0.05
    with fake_kubelet.watch(node.path) as lists:
        assert [states(next(lists)) for _ in range(3)] == [{GOOD.device: 1}] * 3


def test_it_is_sent_twice_again_before_it_expires() -> None:
    assert 2 * health_service.RESEND < health_service.TIMEOUT


def test_streams_take_no_thread_from_prepare(node: Node) -> None:
    with ExitStack() as open_streams:
        for _ in range(STREAMS):
            next(open_streams.enter_context(fake_kubelet.watch(node.path)))
        assert fake_kubelet.prepare_v1(node.path).claims == {}
    fake_kubelet.until_nobody_listens(node.feed)
    with fake_kubelet.watch(node.path) as lists:
        next(lists)


def test_kubelets_that_were_killed_leave_nothing(node: Node) -> None:
    """Each listened as often as may be at a time."""
    for _ in range(2):
        kubelet = listening(node)
        kubelet.kill()
        kubelet.communicate()
        fake_kubelet.until_nobody_listens(node.feed)
    with fake_kubelet.watch(node.path) as lists:
        assert states(next(lists)) == {GOOD.device: 1}


def test_a_stop_ends_the_streams_at_once(node: Node) -> None:
    with (
        fake_kubelet.watch(node.path) as one,
        fake_kubelet.watch(node.path, V1) as other,
    ):
        next(one)
        next(other)
        stopping = threading.Thread(target=node.plugin.stop, args=[LONG])
        stopping.start()
        assert fake_kubelet.rest(one) == fake_kubelet.rest(other) == []
    stopping.join(fake_kubelet.PATIENCE)
    assert not stopping.is_alive()


def test_a_kubelet_that_stands_still_holds_no_stop_up(node: Node) -> None:
    """Lists that nobody takes pile up in the socket until the stream's thread waits there."""
    node.devices = [BAD] * 20_000
    with fake_kubelet.watch(node.path) as lists:
        next(lists)
        for _ in range(20):
            node.feed.wake()
        stopping = threading.Thread(target=node.plugin.stop, args=[0.2])
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
    module = "tests.unit.kubelet_api.listener"
    command = [sys.executable, "-m", module, str(node.path), f"{STREAMS}"]
    kubelet = subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True)
    assert kubelet.stdout is not None
    assert kubelet.stdout.readline() == "heard\n"
    return kubelet
