"""The kubelet's paths for device plugins, below its root directory."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.kubelet_api.sockets import PATH_LIMIT, too_long
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

    def socket(self, kind: str, pod_uid: str) -> Path:
        """The agent's socket for that kind of devices. Its name depends on the agent's pod, because
        two agents may run side by side. Raises SocketError if the path is too long."""
        part = f"-{hashlib.sha256(pod_uid.encode()).hexdigest()[:16]}" if pod_uid else ""
        path = self.plugins / f"{DRIVER}-{kind}{part}.sock"
        if len(bytes(path)) > PATH_LIMIT:
            raise too_long(path)
        return path


def socket_names(kind: str) -> re.Pattern[str]:
    """The names that `Folders.socket` has for any pod."""
    return re.compile(rf"{re.escape(DRIVER)}-{kind}(-[0-9a-f]{{16}})?\.sock")


def socket_identity(path: Path) -> tuple[int, int] | None:
    """Identifies the kubelet's socket, which it makes at each start; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


API_VERSION: Final = "v1beta1"
