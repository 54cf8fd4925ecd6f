"""The journal's file: preallocated, appended to, replaced as a whole when it is compacted."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final

from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint import frames

logger = logging.getLogger(__name__)

_KEPT_ASIDE: Final = 5
_LOOK: Final = 64  # bytes: a frame's head is shorter
_MADE: Final = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_NOWHERE: Final = (-1, -1)  # no file's device and inode


class LogFile:
    """``journal`` in a directory, with ``journal.lock`` beside it.

    Everything but `sync` and `close` is called with `locked` held. A failure raises
    JournalError and leaves the file `spoilt` where it is unknown what of a write or sync
    arrived: then it must be replaced before it is written to again. So must one that ends in a
    torn frame, which another process did not come to write completely.
    """

    def __init__(self, directory: Path, *, effects: Effects, capacity: int) -> None:
        self._directory = directory
        self._path = directory / "journal"
        self._lock_path = directory / "journal.lock"
        self._new = directory / "journal.new"
        self._effects = effects
        self._capacity = capacity
        self._lock = -1
        self._lock_identity = _NOWHERE
        self._fd = -1
        self._identity = _NOWHERE
        self._size = 0
        self._end = 0
        self.spoilt = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out; threads of this one are the caller's to keep out."""
        with _Told(self._directory):
            self._open_lock()
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def exists(self) -> bool:
        """Whether there is a journal."""
        with _Told(self._path):
            return _identity_at(self._path) != _NOWHERE

    def is_known(self) -> bool:
        """Whether we know all that is written; False where that takes a closer look.

        True without `locked`, too: what another process is about to write comes after this moment.
        """
        if self._fd < 0 or self.spoilt:
            return False
        with _Told(self._path):
            in_place = _identity_at(self._path) == self._identity
            return in_place and not self._has_new()

    def replaced(self) -> bool:
        """Whether another process has put a new file in place of the one we have open."""
        if self._fd < 0:
            return True
        with _Told(self._path):
            return _identity_at(self._path) != self._identity

    def read_all(self) -> frames.Scan:
        """Open the file that is there now and read it from its start; none is an empty one."""
        with _Told(self._path):
            self._close_log()
            self._end = 0
            try:
                self._open_log()
            except FileNotFoundError:
                return frames.scan(b"")
            self.spoilt = False
            return self._read_from(0)

    def read_new(self) -> frames.Scan:
        """What was appended behind what we know; usually nothing, which costs one small read."""
        with _Told(self._path):
            return self._read_from(self._end) if self._has_new() else frames.scan(b"")

    def fits(self, frame: bytes) -> bool:
        """Whether there is room for the frame and a zero byte after it."""
        return self._end + len(frame) < self._size

    def append(self, frame: bytes) -> None:
        """Write the frame behind the others; it is durable after the next `sync`."""
        with _Guarded(self, self._path), self._effects(Point.JOURNAL_APPEND):
            if os.pwrite(self._fd, frame, self._end) != len(frame):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end += len(frame)

    def sync(self) -> None:
        """Make durable what was appended. The file has its full length already, so that no
        metadata is written: that makes the difference between 0.1 and 1 ms."""
        if self.spoilt:
            raise JournalError(
                f"the journal {self._path} could not be written",
                remedy="the next call rewrites it",
            )
        with _Guarded(self, self._path), self._effects(Point.JOURNAL_SYNC):
            os.fdatasync(self._fd)

    def replace(self, content: bytes, room_for: int = 0) -> None:
        """Put a new file with `content` in place of the old one, and room for more behind it.

        Durable on return. The room is at least the content's size again, so that compacting
        stays rare however much is held. The disk may be full by then, so the next new file is
        there already, empty and in full length.
        """
        size = self._capacity
        while size < 2 * len(content) + room_for + 1:
            size *= 2
        with _Told(self._path):
            with self._effects(Point.JOURNAL_COMPACT_WRITE), _whole(self._new):
                self._write(self._new, content.ljust(size, b"\0"))
            with self._effects(Point.JOURNAL_COMPACT_RENAME):
                self._new.replace(self._path)
                self._sync_directory()
            self._close_log()
            self._open_log()
        self._end = len(content)
        self.spoilt = False
        self._reserve(size)

    def quarantined(self) -> Path:
        """Give the file a second name, under which it stays for a person to look at when it has
        been replaced; the last few are kept.

        That takes no room, and no reading of what the disk may not give back. A file that has such
        a name already, as it could not be replaced, keeps that one.
        """
        with _Told(self._path), self._effects(Point.JOURNAL_SET_ASIDE):
            older = self._older_asides()
            if older and older[-1].samefile(self._path):
                return older[-1]
            aside = self._place_aside()
            try:
                aside.hardlink_to(self._path)
            except OSError:  # a file system without such names
                with _whole(aside):
                    self._write(aside, self._path.read_bytes())
        logger.error("the journal was damaged; what was there is kept in %s", aside)
        return aside

    def quarantine(self, reason: JournalError) -> Path:
        """Rename the file, which could not be read for `reason`; raises that where nothing can
        be renamed either."""
        try:
            with self._effects(Point.JOURNAL_SET_ASIDE):
                aside = self._place_aside()
                self._path.rename(aside)
        except OSError:
            raise reason from None
        self._close_log()
        logger.error("the journal could not be read; the file is kept as %s", aside)
        return aside

    def _older_asides(self) -> list[Path]:
        return sorted(self._directory.glob("journal.damaged-*"))

    def _place_aside(self) -> Path:
        older = self._older_asides()
        for path in older[: max(0, len(older) - _KEPT_ASIDE + 1)]:
            path.unlink(missing_ok=True)
        last = older[-1].name.rpartition("-")[2] if older else "0"
        number = int(last) + 1 if last.isdecimal() else len(older) + 1
        return self._directory / f"journal.damaged-{number:06d}"

    def close(self) -> None:
        """Close both files."""
        self._close_log()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _open_lock(self) -> None:
        """Open the lock file, again if somebody removed it: another agent would lock a new one."""
        if self._lock >= 0 and _identity_at(self._lock_path) == self._lock_identity:
            return
        with self._effects(Point.JOURNAL_CREATE):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = lock
        self._lock_identity = _identity(os.fstat(lock))

    def _open_log(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        # Neither changes any more: a file that is full is replaced.
        self._identity, self._size = _identity(status), status.st_size

    def _has_new(self) -> bool:
        return bool(os.pread(self._fd, _LOOK, self._end).strip(b"\0"))

    def _read_from(self, offset: int) -> frames.Scan:
        size = os.fstat(self._fd).st_size - offset
        content = os.pread(self._fd, size, offset)
        found = frames.scan(content, offset)
        self._end = offset + found.end
        if found.torn is not None:
            logger.warning("the journal's last record was not written completely, and is left out")
            self.spoilt = True
        if len(content) < size:  # a part of the disk cannot be read; at its start that is an error
            found = replace(found, damage=(*found.damage, (len(content), size)))
        return found

    def _close_log(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _reserve(self, size: int) -> None:
        """In the room that the file had which was replaced just now."""
        try:
            with (
                self._effects(Point.JOURNAL_RESERVE),
                _whole(self._new),
                os.fdopen(os.open(self._new, _MADE, 0o600), "wb") as file,
            ):
                os.posix_fallocate(file.fileno(), 0, size)
                os.fsync(file.fileno())
        except OSError as error:
            logger.warning("no room is kept for the next journal: %s", error.strerror)

    def _write(self, path: Path, content: bytes) -> None:
        """Over what is there, which may be room that was kept; nothing of it stays."""
        with os.fdopen(os.open(path, _MADE, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            file.truncate()
            os.fsync(file.fileno())

    def _sync_directory(self) -> None:
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def is_at(fd: int, path: Path) -> bool:
    """Whether the open file is the one that has the path now."""
    return _identity(os.fstat(fd)) == _identity_at(path)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _identity_at(path: Path) -> tuple[int, int]:
    try:
        return _identity(path.stat())
    except FileNotFoundError:
        return _NOWHERE


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Leave no half of a file: on a full disk it would take the room that is missing."""
    try:
        yield
    except OSError:
        path.unlink(missing_ok=True)
        raise


class _Told:
    """Raises JournalError for an OSError. A class, as a call enters and leaves many of these."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise JournalError(
                f"the journal {self._path} cannot be used: {error.strerror or error}",
                remedy="check that the disk is neither full nor failing nor read-only",
            ) from error


class _Guarded(_Told):
    """Says besides that it is unknown what the file has now."""

    __slots__ = ("_file",)

    def __init__(self, file: LogFile, path: Path) -> None:
        super().__init__(path)
        self._file = file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            # After a failed fsync the kernel forgets which pages were dirty: no later sync
            # can make up for it.
            self._file.spoilt = True
        super().__exit__(kind, error, trace)
