"""A Secret's files in a pod, as the kubelet mounts and updates them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class MountedSecret:
    """Its keys are links into a folder that `..data` names, and this link is exchanged (upstream:
    pkg/volume/util/atomic_writer.go)."""

    def __init__(self, folder: Path, files: Mapping[str, bytes]) -> None:
        self._folder = folder
        self._updates = 0
        folder.mkdir()
        self.update(files)
        for key in files:
            (folder / key).symlink_to(Path("..data") / key)

    def __truediv__(self, key: str) -> Path:
        return self._folder / key

    def update(self, files: Mapping[str, bytes]) -> None:
        """What the Secret has now."""
        self._updates += 1
        written = self._folder / f"..{self._updates}"
        written.mkdir()
        for key, content in files.items():
            (written / key).write_bytes(content)
        new = self._folder / "..data_tmp"
        new.symlink_to(written.name)
        new.rename(self._folder / "..data")
