"""The kubelet's paths for device plugins, below its root directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dra_driver.kubelet_api.sockets import socket_path
from dra_driver.model.names import DRIVER


class Folders(msgspec.Struct, frozen=True):
    """`plugins` is the folder of the plugins' sockets, with the kubelet's socket and its checkpoint
    (k8s.io/kubelet, package deviceplugin/v1beta1; 1.36.3,
    ``pkg/kubelet/cm/devicemanager/types.go``)."""

    plugins: Path
    kubelet: Path
    checkpoint: Path
    pod_resources: Path

    @classmethod
    def of(cls, kubelet_root: Path) -> Folders:
        plugins = kubelet_root / "device-plugins"
        return cls(
            plugins,
            plugins / "kubelet.sock",
            plugins / "kubelet_internal_checkpoint",
            kubelet_root / "pod-resources" / "kubelet.sock",
        )

    def socket(self, resource: str, pod_uid: str) -> Path:
        """The agent's socket for the resource. Its name depends on the agent's pod, because two
        agents may run side by side. Raises SocketError if the path is too long."""
        part = f"-{pod_uid}" if pod_uid else ""
        stem = f"{DRIVER}-{resource.rpartition('/')[2]}{part}"
        return socket_path(self.plugins, stem, ".sock")


def socket_identity(path: Path) -> tuple[int, int] | None:
    """Identifies the kubelet's socket, which it makes at each start; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
