"""The plugin over real unix sockets, asked by the kubelet's half of the protocol."""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dra_driver.kubelet_api.dra.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import SocketError, Sockets
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import ClaimDevice, Prepared
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError, Refused
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.callers import Observer
from tests.unit.kubelet_api.dra.handler import ONE, Handler

LONG = 3600.0
TWO = ClaimRef("team", "two", "uid-2")
DEVICE = ClaimDevice(
    request="gcu",
    pool="gcu.enflame.com/node",
    device="whole-0000-0d-00-0",
    cdi_ids=("gcu.enflame.com/claim=uid-1-whole-0000-0d-00-0",),
)
SHARE = ClaimDevice("gcu", "pool", "shared-0000-0d-00-0", ("a", "b"), share_id="share-7")


class Passing(Effects):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Point]] = []

    def before(self, point: Point) -> None:
        self.seen.append(("before", point))


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def effects() -> Passing:
    return Passing()


@pytest.fixture
def sockets(root: Path) -> Sockets:
    return Sockets.of(root)


@pytest.fixture
def plugin(handler: Handler, sockets: Sockets, effects: Passing) -> Iterator[KubeletPlugin]:
    plugin = KubeletPlugin(handler, list, sockets, Observer(), effects=effects)
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


@pytest.mark.parametrize(
    ("answer", "errors"),
    [
        pytest.param(
            {"uid-1": (DEVICE,), "uid-2": Refused("held", remedy="wait")},
            {"uid-1": "", "uid-2": "held; wait"},
            id="one claim fails",
        ),
        pytest.param(
            {"uid-1": (DEVICE,)},
            {"uid-1": "", "uid-2": "claim team/two got no result"},
            id="a claim without result",
        ),
        pytest.param(
            GcuError("the journal is lost"),
            {"uid-1": "the journal is lost", "uid-2": "the journal is lost"},
            id="the call fails",
        ),
        pytest.param(
            ZeroDivisionError("oops"),
            dict.fromkeys(
                ("uid-1", "uid-2"),
                "internal error of the agent: ZeroDivisionError('oops'); "
                "report it with the stack trace in its log",
            ),
            id="a bug",
        ),
        pytest.param(
            {"uid-1": (), "uid-2": (), "uid-3": ()},
            {"uid-1": "", "uid-2": ""},
            id="no claim that was not asked for",
        ),
    ],
)
def test_every_claim_gets_its_own_result(
    plugin: KubeletPlugin,
    handler: Handler,
    sockets: Sockets,
    answer: Mapping[str, Prepared | GcuError] | Exception,
    errors: Mapping[str, str],
) -> None:
    handler.prepared = answer
    reply = fake_kubelet.prepare_v1(sockets.service, ONE, TWO)
    assert {uid: entry.error for uid, entry in reply.claims.items()} == errors


def test_unprepare_says_which_claim_failed(
    plugin: KubeletPlugin, handler: Handler, sockets: Sockets
) -> None:
    handler.unprepared = {"uid-1": None, "uid-2": Refused("busy")}
    reply = fake_kubelet.unprepare_v1(sockets.service, ONE, TWO)
    assert {uid: entry.error for uid, entry in reply.claims.items()} == {
        "uid-1": "",
        "uid-2": "busy",
    }


def test_a_bug_leaves_its_trace_in_the_log(
    plugin: KubeletPlugin,
    handler: Handler,
    sockets: Sockets,
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler.prepared = ZeroDivisionError("oops")
    fake_kubelet.prepare_v1(sockets.service, ONE)
    (traced,) = [record for record in caplog.records if record.exc_info]
    assert traced.levelno == logging.ERROR


def test_each_reply_passes_the_seam(
    plugin: KubeletPlugin, effects: Passing, sockets: Sockets
) -> None:
    effects.seen.clear()
    fake_kubelet.prepare_v1(sockets.service, ONE)
    fake_kubelet.unprepare_v1(sockets.service, ONE)
    assert effects.seen == [("before", Point.REPLY_PREPARE), ("before", Point.REPLY_UNPREPARE)]


def test_a_call_for_no_claim_leaves_no_trace(
    plugin: KubeletPlugin,
    handler: Handler,
    effects: Passing,
    sockets: Sockets,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The agent's check of its own sockets is one, every few seconds."""
    effects.seen.clear()
    caplog.clear()
    assert fake_kubelet.prepare_v1(sockets.service).claims == {}
    assert (handler.asked, effects.seen, caplog.records) == ([], [], [])


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


def test_a_stop_waits_for_no_stream(plugin: KubeletPlugin, sockets: Sockets) -> None:
    with fake_kubelet.watch_v1alpha1(sockets.service) as lists:
        next(lists)
        stopping = threading.Thread(target=plugin.stop, args=[LONG])
        stopping.start()
        assert fake_kubelet.rest(lists) == []
    stopping.join(fake_kubelet.PATIENCE)
    assert not stopping.is_alive()


def test_the_health_is_sent_again_when_another_agent_leaves(
    root: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet forgets then what both have sent, perhaps a little later: so it is sent twice.
    Two changes that come at once are one list."""
    one, other = (Sockets.of(root, uid) for uid in ("pod-one", "pod-two"))
    plugin = KubeletPlugin(handler, list, one, Observer(), check_every=0.01)
    leaver = KubeletPlugin(handler, list, other, Observer())
    plugin.broadcaster._resend = LONG  # it does not come by itself
    changes, wake = threading.Semaphore(0), plugin.broadcaster.wake

    def counted() -> None:
        wake()
        changes.release()

    monkeypatch.setattr(plugin.broadcaster, "wake", counted)
    leaver.start()
    plugin.start()
    with fake_kubelet.watch_v1alpha1(one.service) as lists:
        next(lists)
        leaver.stop(grace=0)
        next(lists)
        assert all(changes.acquire(timeout=60) for _ in range(2))
    plugin.stop(grace=1)


class Removing(Effects):
    """No socket can be removed: the folder has become read-only."""

    def before(self, point: Point) -> None:
        if point is Point.SOCKET_REMOVE:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_socket_that_cannot_be_removed_holds_no_end_up(
    handler: Handler, sockets: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = KubeletPlugin(handler, lambda: (), sockets, Observer(), effects=Removing())
    plugin.start()
    plugin.stop(grace=1)
    for path in (sockets.registration, sockets.service):
        assert f"{path} stays: Read-only file system" in caplog.text
