"""The sockets in the kubelet's own folders, whichever agent of this driver made them."""

from __future__ import annotations

from pathlib import Path

from dra_driver.kubelet_api.device_plugin.folders import Folders, socket_names
from dra_driver.kubelet_api.siblings import dra_siblings
from dra_driver.kubelet_api.sockets import Sockets


def all_sockets(kubelet_root: Path) -> tuple[Path, ...]:
    """Of all agents and both ways. Raises OSError where a folder that exists cannot be listed."""
    names = {
        path.parent: pattern for path, pattern in dra_siblings(Sockets.of(kubelet_root)).items()
    }
    names[Folders.of(kubelet_root).plugins] = socket_names("[a-z]+")
    return tuple(
        path
        for folder, pattern in names.items()
        if folder.exists()
        for path in sorted(folder.iterdir())
        if pattern.fullmatch(path.name) and path.is_socket()
    )
