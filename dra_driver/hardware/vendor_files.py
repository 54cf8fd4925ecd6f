"""The vendor's tool and library in a container: how `efsmi` finds the library, and whether the
mounts still show what the node has.

A bind mount shows the directory or file that it was made from, wherever that one goes. If the
node's administrator removes or renames the directory and makes a new one of the same name, a
running container still sees the old one. Files that are replaced *in* a mounted directory are seen
at once.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

MOUNTINFO: Final = Path("/proc/self/mountinfo")

_LIBRARY: Final = "libefml.so"
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def library_folder(library: Path) -> Path:
    """A new directory for `LD_LIBRARY_PATH` whose only entry is the link ``libefml.so`` to
    `library`. It is removed when the program ends. Raises OSError if it cannot be made.

    The dynamic loader follows the link, and the node's own link behind it, in each new process. The
    library's own directory is not put on the search path: it may be the node's ``/usr/lib``, and
    nothing else of it must be loaded.
    """
    folder = Path(tempfile.mkdtemp(prefix="efsmi-library-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / _LIBRARY).symlink_to(library)
    return folder


class VendorMounts:
    """The mounts of this container through which `tool` and the vendor's library are seen.

    A mount counts if it is at `tool` or above it, at `library` or above it, or if it is a file
    ``libefml…`` (the vendor's runtime mounts single files).
    """

    def __init__(self, tool: Path, library: Path | None, mountinfo: Path = MOUNTINFO) -> None:
        """`tool` is a path, or a name on PATH. Later mounts are compared with the present ones."""
        found = Path(shutil.which(tool) or tool)
        self._seen = [each for each in (found, library) if each is not None and each.is_absolute()]
        self._mountinfo = mountinfo
        self._first = self._roots()

    @property
    def problem(self) -> str | None:
        """Which mount shows what the node no longer has at that place, or None. Only a new
        container shows the node's present files."""
        now = self._roots()
        for (mount, point), root in self._first.items():
            if now.get((mount, point), root) != root:
                return f"{point} was replaced on the node, and this container still has the old one"
        return None

    def _roots(self) -> dict[tuple[str, Path], str]:
        """(mount id, mount point) → directory of its file system that is mounted. The kernel names
        it by its present path, with ``//deleted`` after that of a removed one (fs/d_path.c)."""
        try:
            lines = self._mountinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return {}
        found = {}
        for line in lines:
            mount, _parent, _device, root, escaped = line.split(" ", 5)[:5]
            point = Path(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), escaped))
            if self._is_seen_through(point):
                found[mount, point] = root
        return found

    def _is_seen_through(self, point: Path) -> bool:
        return point.name.startswith("libefml") or any(
            path.is_relative_to(point) for path in self._seen
        )
