"""Which sockets in the kubelet's folders are this driver's."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dra_driver.kubelet_api.device_plugin.folders import Folders
from dra_driver.kubelet_api.leavings import all_sockets
from dra_driver.kubelet_api.sockets import Sockets


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("k")  # a short path


def leave(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    return path


def test_those_of_every_agent_and_no_others(root: Path) -> None:
    old, new, plugins = Sockets.of(root), Sockets.of(root, "pod-one"), Folders.of(root)
    ours = {
        *(
            leave(each)
            for sockets in (old, new)
            for each in (sockets.service, sockets.registration)
        ),
        *(leave(plugins.socket(kind, "pod-one")) for kind in ("whole", "shared", "drs", "count")),
        leave(plugins.socket("whole", "")),
    }
    leave(plugins.kubelet)
    leave(plugins.plugins / "nvidia-gpu.sock")
    leave(old.registration.with_name("gpu.nvidia.com-reg.sock"))
    old.registration.with_name("gcu.enflame.com-file-reg.sock").touch()
    assert set(all_sockets(root)) == ours


def test_a_folder_that_is_not_there_has_none(root: Path) -> None:
    assert all_sockets(root) == ()
