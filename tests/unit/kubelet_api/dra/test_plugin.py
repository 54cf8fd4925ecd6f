"""The plugin over real unix sockets, asked by the kubelet's half of the protocol."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.kubelet_api.dra.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import SocketError, Sockets
from dra_driver.model.claims.claim_device import ClaimDevice
from dra_driver.model.effects import Point
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.callers import Observer
from tests.unit.kubelet_api.dra.handler import ONE, TWO, Handler
from tests.unit.node.effects import Failing

DEVICE = ClaimDevice(
    request="gcu",
    pool="gcu.enflame.com/node",
    device="whole-0000-0d-00-0",
    cdi_ids=("gcu.enflame.com/claim=uid-1-whole-0000-0d-00-0",),
)
SHARE = ClaimDevice("gcu", "pool", "shared-0000-0d-00-0", ("a", "b"), share_id="share-7")


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def sockets(root: Path) -> Sockets:
    return Sockets.of(root)


@pytest.fixture
def plugin(handler: Handler, sockets: Sockets) -> Iterator[KubeletPlugin]:
    plugin = KubeletPlugin(handler, list, sockets, Observer())
    plugin.start()
    yield plugin
    plugin.stop(grace=1)


def test_the_kubelet_registers_the_plugin(plugin: KubeletPlugin, sockets: Sockets) -> None:
    info = fake_kubelet.get_info(sockets.registration)
    assert (info.type, info.name) == ("DRAPlugin", "gcu.enflame.com")
    assert list(info.supported_versions) == [
        "v1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]
    assert plugin.registration.problem() == "waiting for the kubelet to register the driver"
    fake_kubelet.notify(sockets.registration, registered=True)
    assert plugin.registration.problem() is None
    assert fake_kubelet.prepare_v1(Path(info.endpoint)).claims == {}


def test_sockets_are_their_owners_alone_and_go_away(
    plugin: KubeletPlugin, sockets: Sockets
) -> None:
    for path in (sockets.service, sockets.registration):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    plugin.stop(grace=1)
    assert not sockets.service.exists()
    assert not sockets.registration.exists()


def test_v1_carries_every_field(plugin: KubeletPlugin, handler: Handler, sockets: Sockets) -> None:
    handler.prepared = {"uid-1": (DEVICE,), "uid-2": (SHARE,)}
    reply = fake_kubelet.prepare_v1(sockets.service, ONE, TWO)
    assert handler.asked == [(ONE, TWO)]
    (whole,) = reply.claims["uid-1"].devices
    assert (list(whole.request_names), whole.pool_name) == (["gcu"], "gcu.enflame.com/node")
    assert whole.device_name == "whole-0000-0d-00-0"
    assert list(whole.cdi_device_ids) == list(DEVICE.cdi_ids)
    assert not whole.HasField("share_id")
    (share,) = reply.claims["uid-2"].devices
    assert share.share_id == "share-7"
    assert list(share.cdi_device_ids) == ["a", "b"]


def test_a_start_after_a_kill_takes_over_the_sockets(
    handler: Handler, sockets: Sockets, plugin: KubeletPlugin
) -> None:
    second = KubeletPlugin(handler, list, sockets, Observer())
    second.start()
    fake_kubelet.notify(sockets.registration, registered=True)
    assert second.registration.problem() is None
    assert plugin.registration.problem() is not None
    second.stop(grace=1)


@pytest.mark.parametrize("missing", ["plugins", "plugins_registry"])
def test_a_wrong_root_directory_is_told(root: Path, handler: Handler, missing: str) -> None:
    (root / missing).rmdir()
    plugin = KubeletPlugin(handler, list, Sockets.of(root), Observer())
    with pytest.raises(SocketError, match="kubeletRootDir"):
        plugin.start()
    plugin.stop(grace=0)


def test_its_threads_live_until_it_is_stopped(plugin: KubeletPlugin) -> None:
    assert plugin.ended() is None
    assert plugin.self_check.problem is None
    plugin.self_check.stop(fake_kubelet.PATIENCE)
    assert plugin.ended() == "self-check"
    plugin.stop(grace=1)
    plugin._thread.join(fake_kubelet.PATIENCE)
    assert plugin.ended() == "socket-watch"


def test_the_health_is_sent_again_when_another_agent_leaves(
    root: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet forgets then what both have sent, perhaps a little later: so it is sent twice.
    Two changes that come at once are one list."""
    one, other = (Sockets.of(root, uid) for uid in ("pod-one", "pod-two"))
    plugin = KubeletPlugin(handler, list, one, Observer(), check_every=0.01)
    leaver = KubeletPlugin(handler, list, other, Observer())
    plugin.broadcaster._resend = 3600.0  # it does not come by itself
    changes, wake = threading.Semaphore(0), plugin.broadcaster.wake

    def counted() -> None:
        wake()
        changes.release()

    monkeypatch.setattr(plugin.broadcaster, "wake", counted)
    leaver.start()
    plugin.start()
    with fake_kubelet.watch(one.service) as lists:
        next(lists)
        leaver.stop(grace=0)
        next(lists)
        assert all(changes.acquire(timeout=60) for _ in range(2))
    plugin.stop(grace=1)


def test_a_socket_that_cannot_be_removed_holds_no_end_up(
    handler: Handler, sockets: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    read_only = Failing(Point.SOCKET_REMOVE, lambda: OSError(errno.EROFS, os.strerror(errno.EROFS)))
    plugin = KubeletPlugin(handler, list, sockets, Observer(), effects=read_only)
    plugin.start()
    plugin.stop(grace=1)
    for path in (sockets.registration, sockets.service):
        assert f"{path} stays: Read-only file system" in caplog.text
