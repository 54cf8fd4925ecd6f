"""buildah with a storage of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.build import Report
from tests.cluster.image.contained import run_contained

_MEMORY = Path("/dev/shm")
_SCRATCH_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Buildah:
    """A storage in the folder `storage`, which another one, only read, may complete."""

    storage: Path
    scratch: Path
    completes: Path | None = None

    def build(
        self, context: Path, *arguments: str | Path, title: str, report: Report, network: bool
    ) -> None:
        """`buildah build` of the context. Raises BuildError with the end of the output."""
        also = (f"--storage-opt=vfs.imagestore={self.completes}",) if self.completes else ()
        # vfs and chroot need nothing of the kernel, so they work inside containers too.
        store = ("--storage-driver=vfs", f"--root={self.storage}", f"--runroot={self.scratch}/run")
        run_contained(
            ["buildah", *store, *also, "build", "--layers=false", *arguments, context],
            title=title,
            report=report,
            scratch=self.scratch,
            network=network,
            environment={"BUILDAH_ISOLATION": "chroot"},
        )


@contextmanager
def scratch_folder(on_disk: Path) -> Iterator[Path]:
    """A folder for working copies of file trees: in memory where that has room, as writing them
    to a disk takes several times as long, else in `on_disk`."""
    parent = _MEMORY if _has_room(_MEMORY) else on_disk
    with tempfile.TemporaryDirectory(prefix="gcu-dra-image-", dir=parent) as folder:
        yield Path(folder)


def _has_room(folder: Path) -> bool:
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    return shutil.disk_usage(folder).free >= _SCRATCH_BYTES
