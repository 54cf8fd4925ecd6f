"""Where the kubelet looks for a plugin's sockets, and has its own: paths below its root directory.

The names of a DRA plugin's sockets are those of k8s.io/dynamic-resource-allocation, package
kubeletplugin: with a pod UID two agents serve side by side during a rolling update, which kubelets
understand from 1.33 on.
"""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError
from dra_driver.model.identifiers import check_id
from dra_driver.model.names import DRIVER

# sockaddr_un.sun_path holds 108 bytes, one of which ends the string (unix(7)).
_LONGEST: Final = 107


class SocketError(GcuError):
    """The agent cannot make a socket for the kubelet; ``what`` names its path."""


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


class Folders(msgspec.Struct, frozen=True):
    """`plugins` is the folder of the plugins' sockets, with the kubelet's socket and its checkpoint
    (k8s.io/kubelet, package deviceplugin/v1beta1; 1.36.3,
    ``pkg/kubelet/cm/devicemanager/types.go``). `pod_uid` is that of the agent's pod, or empty: two
    agents can serve side by side."""

    pod_uid: str
    plugins: Path
    kubelet: Path
    checkpoint: Path
    pod_resources: Path

    @classmethod
    def of(cls, kubelet_root: Path, pod_uid: str = "") -> Folders:
        plugins = kubelet_root / "device-plugins"
        return cls(
            pod_uid,
            plugins,
            plugins / "kubelet.sock",
            plugins / "kubelet_internal_checkpoint",
            kubelet_root / "pod-resources" / "kubelet.sock",
        )

    def socket(self, resource: str) -> Path:
        """The agent's socket for the resource. Raises SocketError if the path is too long."""
        part = f"-{self.pod_uid}" if self.pod_uid else ""
        stem = f"{DRIVER}-{resource.rpartition('/')[2]}{part}"
        return socket_path(self.plugins, stem, ".sock")


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
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise SocketError(
                f"{path} is in the way of the agent's socket and is no socket itself",
                remedy="find out who made it, and remove it",
            )
        with effects(Point.SOCKET_REMOVE):
            path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketError(f"{path} cannot be removed: {error.strerror}") from error


def file_identity(path: Path) -> tuple[int, int] | None:
    """Identifies a file that the kubelet makes anew: its socket at each start, its checkpoint at
    each write. None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
