from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from dra_driver.kubelet_api.sockets import SocketError, Sockets, remove_stale
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import InvalidValue
from tests.unit.node.effects import Failing

UID = "0b6a1f7e-3f0c-4f3a-9f29-5e7b0a5b6a11"


@pytest.mark.parametrize(
    ("root", "pod_uid", "service", "registration"),
    [
        pytest.param(
            "/var/lib/kubelet",
            "",
            "/var/lib/kubelet/plugins/gcu.enflame.com/dra.sock",
            "/var/lib/kubelet/plugins_registry/gcu.enflame.com-reg.sock",
            id="one agent",
        ),
        pytest.param(
            "/var/lib/kubelet",
            UID,
            f"/var/lib/kubelet/plugins/gcu.enflame.com/dra-{UID}.sock",
            f"/var/lib/kubelet/plugins_registry/gcu.enflame.com-{UID}-reg.sock",
            id="rolling update",
        ),
        pytest.param(
            "/var/lib/a-distribution-with-long-names/kubelet",
            UID,
            "/var/lib/a-distribution-with-long-names/kubelet/plugins/gcu.enflame.com"
            "/gcu-1c36dde5414510a3.sock",
            "/var/lib/a-distribution-with-long-names/kubelet/plugins_registry"
            "/gcu-8db496cfb8c9bd87-reg.sock",
            id="too long is hashed",
        ),
    ],
)
def test_paths(root: str, pod_uid: str, service: str, registration: str) -> None:
    sockets = Sockets.of(Path(root), pod_uid)
    assert (str(sockets.service), str(sockets.registration)) == (service, registration)


@pytest.mark.parametrize("pod_uid", ["../../x", "a/b", "a\0", "..", "a" * 100], ids=repr)
def test_no_uid_leads_elsewhere(pod_uid: str) -> None:
    with pytest.raises(InvalidValue, match="is not a pod UID"):
        Sockets.of(Path("/var/lib/kubelet"), pod_uid)


@pytest.mark.parametrize("length", range(30, 58))
def test_no_path_is_longer_than_a_socket_may_be(length: int) -> None:
    sockets = Sockets.of(Path("/" + "r" * (length - 1)), UID)
    assert len(bytes(sockets.service)) <= 107
    assert len(bytes(sockets.registration)) <= 107


def test_two_pods_never_share_a_hashed_name() -> None:
    root = Path("/" + "r" * 50)
    assert Sockets.of(root, UID) != Sockets.of(root, UID.replace("0", "1"))


def test_a_root_that_leaves_no_room_is_refused_with_the_remedy() -> None:
    with pytest.raises(SocketError, match=r"Linux allows 107; give the kubelet a shorter root"):
        Sockets.of(Path("/" + "r" * 90))


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    """What a killed agent leaves."""
    path = tmp_path / "dra.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    return path


def test_a_dead_agents_socket_is_removed(dead: Path) -> None:
    for _ in range(2):
        remove_stale(dead, Effects())
        assert not dead.exists()


def test_what_is_no_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "dra.sock"
    path.write_text("precious")
    with pytest.raises(SocketError, match="is no socket itself; find out who made it"):
        remove_stale(path, Effects())
    assert path.read_text() == "precious"


def test_what_cannot_be_removed_is_told(dead: Path) -> None:
    read_only = Failing(Point.SOCKET_REMOVE, lambda: OSError(errno.EROFS, os.strerror(errno.EROFS)))
    with pytest.raises(SocketError, match=r"dra\.sock cannot be removed: Read-only file system"):
        remove_stale(dead, read_only)
