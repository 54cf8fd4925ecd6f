"""Where the kubelet looks for a plugin's sockets.

Names are those of k8s.io/dynamic-resource-allocation, package kubeletplugin: with a pod UID two
agents serve side by side during a rolling update, which kubelets understand from 1.33 on.
"""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.kubelet_api.errors import SocketError
from dra_driver.model.effects import Effects, Point
from dra_driver.model.identifiers import check_id
from dra_driver.model.names import DRIVER

# sockaddr_un.sun_path holds 108 bytes, one of which ends the string (unix(7)).
_LONGEST: Final = 107


class Sockets(msgspec.Struct, frozen=True):
    """The paths of both sockets; they are the same in the agent's container and on the node."""

    service: Path
    registration: Path

    @classmethod
    def of(cls, kubelet_root: Path, pod_uid: str = "") -> Sockets:
        """The sockets below the kubelet's root directory (``/var/lib/kubelet`` by default).

        `pod_uid` is that of the agent's pod, or empty for kubelets below 1.33. Raises SocketError
        if a path is too long, InvalidValue for a UID that cannot be part of a file name.
        """
        part = f"-{check_id(pod_uid, 'pod UID')}" if pod_uid else ""
        return cls(
            service=socket_path(kubelet_root / "plugins" / DRIVER, f"dra{part}", ".sock"),
            registration=socket_path(
                kubelet_root / "plugins_registry", f"{DRIVER}{part}", "-reg.sock"
            ),
        )


def socket_path(folder: Path, stem: str, suffix: str) -> Path:
    """The path of a socket. If it is too long, a hash replaces the stem; raises SocketError if that
    is too long as well."""
    hashed = "gcu-" + hashlib.sha256(stem.encode()).hexdigest()[:16]
    for name in (stem, hashed):
        path = folder / f"{name}{suffix}"
        if len(bytes(path)) <= _LONGEST:
            return path
    raise SocketError(
        f"the socket path {path} has {len(bytes(path))} bytes, and Linux allows {_LONGEST}",
        remedy="give the kubelet a shorter root directory, or a short link to it",
    )


def remove_stale(path: Path, effects: Effects) -> None:
    """Remove a dead agent's socket at `path`. Raises SocketError if it is no socket, or cannot be
    removed."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketError(f"{path} cannot be examined: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise SocketError(
            f"{path} is in the way of the agent's socket and is no socket itself",
            remedy="find out who made it, and remove it",
        )
    try:
        with effects(Point.SOCKET_REMOVE):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise SocketError(f"{path} cannot be removed: {error.strerror}") from error
