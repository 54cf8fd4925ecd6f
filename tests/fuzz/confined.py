"""Sees to it that code writes below one folder, starts no program and opens no connection.

The interpreter tells of each such act before it happens (PEP 578), whoever calls it; what is in
the way of the act is raised out of it. A hook cannot be taken back, so one stays for good and
does nothing while nobody is confined.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_CHANGING: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, 2),),
    "os.utime": ((0, 3),),
}
"""By act: where among its arguments a path stands, and where the folder that it starts from."""
_NEVER: Final = frozenset(
    {"os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"}
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Escape(BaseException):
    """An act that the folder's confines forbid; nothing of the driver's may catch it."""


class _Confines:
    """Which folder it is now, if any."""

    folder: Path | None = None
    hooked = False


@contextmanager
def confined(folder: Path) -> Iterator[None]:
    """Let no act of this process change anything outside of `folder` meanwhile; raises Escape out
    of the act."""
    if not _Confines.hooked:
        sys.addaudithook(_hook)
        _Confines.hooked = True
    _Confines.folder = folder.resolve()
    # A module that is imported meanwhile is compiled, which is not an act of the code.
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes_bytecode
        _Confines.folder = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    folder = _Confines.folder
    if folder is None:
        return
    if event in _NEVER:
        raise Escape(f"{event} {arguments!r}")
    for path, start in _changed(event, arguments):
        if not _is_below(path, start, folder):
            raise Escape(f"{event} {path!r}")


def _changed(event: str, arguments: tuple[Any, ...]) -> Iterator[tuple[str, int]]:
    """Each path that the act changes, with the descriptor of the folder that it starts from, or
    one below 0."""
    if event == "open":
        path, _, flags = arguments
        if flags & _WRITING and isinstance(path, str | bytes | os.PathLike):
            yield os.fsdecode(path), -1
    for at, start in _CHANGING.get(event, ()):
        if isinstance(arguments[at], str | bytes | os.PathLike):
            given = arguments[start] if start < len(arguments) else -1
            yield os.fsdecode(arguments[at]), given if isinstance(given, int) else -1


def _is_below(path: str, start: int, folder: Path) -> bool:
    beginning = Path(f"/proc/self/fd/{start}").readlink() if start >= 0 else Path.cwd()
    # Normalised rather than resolved: a link is a file of the folder, and so is what makes it.
    return Path(os.path.normpath(beginning / path)).is_relative_to(folder)
