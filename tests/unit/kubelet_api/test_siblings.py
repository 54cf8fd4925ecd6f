"""Sockets that lie beside an agent's own: whose are removed, and who is seen to leave."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dra_driver.kubelet_api.siblings import REGISTRATIONS, SERVICES, Siblings
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.effects import Effects

# Shorter than pods' UIDs: here names are tested, and their length elsewhere.
UID, OTHER = "pod-one", "pod-two"


class Folders:
    """The kubelet's folders, with sockets in them."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.sockets = Sockets.of(root, UID)
        self.service = self.sockets.service.parent
        self.registry = self.sockets.registration.parent
        self._stack = stack
        for folder in (self.service, self.registry):
            folder.mkdir(parents=True)

    def listen(self, path: Path) -> socket.socket:
        """Somebody who listens there, until closed."""
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(1)
        return listener

    def leave(self, path: Path) -> Path:
        """What a killed process leaves there."""
        self.listen(path).close()
        return path

    def siblings(self) -> Siblings:
        own = {self.sockets.service: SERVICES, self.sockets.registration: REGISTRATIONS}
        return Siblings(own, Effects())


@pytest.fixture
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folders]:
    with ExitStack() as stack:
        yield Folders(tmp_path_factory.mktemp("k"), stack)  # a short path


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        pytest.param("service", "dra.sock", id="service, without a pod's UID"),
        pytest.param("service", f"dra-{OTHER}.sock", id="service"),
        pytest.param("service", "gcu-1c36dde5414510a3.sock", id="service, hashed"),
        pytest.param("registry", "gcu.enflame.com-reg.sock", id="without a pod's UID"),
        pytest.param("registry", f"gcu.enflame.com-{OTHER}-reg.sock", id="with it"),
        pytest.param("registry", "gcu-1c36dde5414510a3-reg.sock", id="hashed"),
    ],
)
def test_a_dead_agents_socket_is_removed(folders: Folders, folder: str, name: str) -> None:
    dead = folders.leave(getattr(folders, folder) / name)
    siblings = folders.siblings()
    siblings.run_once()
    assert dead.exists(), "it may be one that will listen in a moment"
    siblings.run_once()
    assert not dead.exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("gpu.nvidia.com-reg.sock", id="another driver"),
        pytest.param("gcu.enflame.company-reg.sock", id="a longer name"),
        pytest.param("gcu-short-reg.sock", id="no hash of ours"),
    ],
)
def test_other_drivers_sockets_stay(folders: Folders, name: str) -> None:
    other = folders.leave(folders.registry / name)
    siblings = folders.siblings()
    for _ in range(3):
        siblings.run_once()
    assert other.exists()


def test_what_is_alive_or_ours_or_no_socket_stays(folders: Folders) -> None:
    folders.listen(folders.service / "dra.sock")
    folders.leave(folders.sockets.service)
    (folders.service / f"dra-{OTHER}.sock").write_text("no socket")
    before = sorted(folders.service.iterdir())
    siblings = folders.siblings()
    for _ in range(3):
        siblings.run_once()
    assert sorted(folders.service.iterdir()) == before


def test_one_that_begins_to_listen_between_two_looks_stays(folders: Folders) -> None:
    path = folders.registry / "gcu.enflame.com-reg.sock"
    with socket.socket(socket.AF_UNIX) as late:
        late.bind(str(path))
        siblings = folders.siblings()
        siblings.run_once()
        late.listen(1)
        siblings.run_once()
        siblings.run_once()
        assert path.exists()


def test_one_that_does_not_take_calls_for_a_while_stays(folders: Folders) -> None:
    path = folders.registry / "gcu.enflame.com-reg.sock"
    folders.listen(path)
    siblings = folders.siblings()
    for _ in range(10):  # more than wait for it to take them
        assert not siblings.run_once()
    assert path.exists()


@pytest.mark.parametrize("clean", [pytest.param(True, id="stop"), pytest.param(False, id="kill")])
def test_an_agent_that_leaves_is_noticed_once(folders: Folders, clean: bool) -> None:
    path = folders.service / f"dra-{OTHER}.sock"
    siblings = folders.siblings()
    assert not siblings.run_once()
    listener = folders.listen(path)
    assert not siblings.run_once()
    listener.close()
    if clean:
        path.unlink()
    assert siblings.run_once()
    assert not siblings.run_once()


def test_folders_that_are_gone_are_no_siblings(folders: Folders) -> None:
    folders.service.rmdir()
    assert not folders.siblings().run_once()


def test_without_file_descriptors_to_spare_nobody_is_taken_for_dead(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = folders.leave(folders.service / "dra.sock")
    siblings = folders.siblings()

    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", refuse)
        for _ in range(2):
            siblings.run_once()
    assert dead.exists()
