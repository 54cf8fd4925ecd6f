"""A node as agents leave it, for tests of what is removed from it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dra_driver.kubelet_api.device_plugin.folders import Folders
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.journal import Journal
from dra_driver.node.records import Record
from dra_driver.uninstall.traces import Traces
from tests.unit.node.journals import opened


class LeftNode:
    """Below `root`, with the folders of a kubelet, each with a file of somebody else."""

    def __init__(self, root: Path) -> None:
        self.kubelet = root / "k"  # short, as sockets lie below it
        self.cdi_dir = root / "cdi"
        self.traces = Traces(self.kubelet, self.cdi_dir)
        self.state = self.traces.state
        self.cdi = CdiDirectory(self.cdi_dir)
        self.sockets = Sockets.of(self.kubelet, "pod-one")
        self.plugins = Folders.of(self.kubelet)
        others = (
            self.kubelet / "plugins" / "other.example.com" / "state",
            self.sockets.registration.parent / "other.example.com-reg.sock",
            self.plugins.checkpoint,
            self.cdi_dir / "other.json",
        )
        for each in others:
            each.parent.mkdir(parents=True)
            each.touch()
        self._others = self.everything()

    def everything(self) -> set[Path]:
        return set(self.kubelet.rglob("*")) | set(self.cdi_dir.rglob("*"))

    def ours(self) -> set[str]:
        """The names of what is there of the driver."""
        assert self._others <= self.everything(), "somebody else's"
        return {path.name for path in self.everything() - self._others}

    def serve(self, *records: Record) -> Journal:
        """Leave what an agent leaves that was killed, with these records."""
        journal = opened(self.state)
        for each in records:
            journal.write(each)
        (self.state / "locks").mkdir()
        for name in ("locks/claims.lock", "profiles.json", "journal.damaged-000001"):
            (self.state / name).touch()
        for path in (*self._sockets(),):
            with self.listening(path):
                pass
        return journal

    @contextmanager
    def listening(self, path: Path) -> Iterator[None]:
        """Somebody listens at the path; the socket stays."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(1)
            yield

    def _sockets(self) -> Iterator[Path]:
        yield from (self.sockets.service, self.sockets.registration)
        yield self.plugins.socket("count", "")
