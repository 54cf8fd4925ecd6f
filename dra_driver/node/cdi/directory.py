"""The directories of files that container runtimes read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from dra_driver.model.effects import NO_FAULTS, Effects, Point
from dra_driver.model.errors import GcuError
from dra_driver.model.identifiers import check_id
from dra_driver.model.names import DRIVER
from dra_driver.util.os_errors import OsErrorAs

_NAME: Final = re.compile(re.escape(f"{DRIVER}-claim-") + r"(?P<uid>[0-9A-Za-z-]+)\.json(\.new)?")


class CdiError(GcuError):
    """The CDI directory cannot be read or written."""


class CdiDirectory:
    """This driver's CDI files in `path`, beside those of others. Each method is called with the
    claim's lock held. Raises CdiError if the directory cannot be used, InvalidValue for an unsafe
    UID.

    Files are not synced: the directory is usually a tmpfs. Recovery compares every file with the
    journal, and writes the files again that a power failure has taken.
    """

    def __init__(self, path: Path, *, effects: Effects = NO_FAULTS) -> None:
        self._path = path
        self._effects = effects

    def read(self, uid: str) -> bytes | None:
        """The claim's file, or None."""
        return _read(self._file(uid))

    def write(self, uid: str, content: bytes) -> None:
        """Write the claim's file. It is complete at every moment; runtimes read ``*.json`` only."""
        _write(self._file(uid), content, self._effects)

    def remove(self, uid: str) -> bool:
        """Remove the claim's file, finished or not. Returns whether there was a finished one."""
        path = self._file(uid)
        with _errors(path):
            _remove(_unfinished(path))
            with self._effects(Point.CDI_REMOVE):
                return _remove(path)

    def uids(self) -> frozenset[str]:
        """The UIDs of all claims with a file, finished or not; needs no lock."""
        with _errors(self._path):
            if not self._path.exists():
                return frozenset()
            matches = [_NAME.fullmatch(path.name) for path in self._path.iterdir()]
        return frozenset(match["uid"] for match in matches if match)

    def _file(self, uid: str) -> str:
        """Text instead of a Path, which interns its parts: after many claims the interpreter's
        table of names would grow by a MiB."""
        return f"{self._path}/{DRIVER}-claim-{check_id(uid, 'UID')}.json"


class MetadataDirectory:
    """Files with the metadata of devices, ``<UID>/<request>.json``; a runtime mounts them, so the
    path must be the same in the agent's pod. Locks and errors are as in `CdiDirectory`."""

    def __init__(self, path: Path, *, effects: Effects = NO_FAULTS) -> None:
        self.path = path
        self._effects = effects

    def read(self, uid: str, request: str) -> bytes | None:
        """The file of a request, or None."""
        return _read(f"{self._folder(uid)}/{request}.json")

    def write(self, uid: str, files: Mapping[str, bytes]) -> None:
        """Write the file of each request. A container that has the former one keeps it."""
        folder = self._folder(uid)
        for request, content in files.items():
            _write(f"{folder}/{request}.json", content, self._effects)

    def remove(self, uid: str) -> None:
        """Remove the files of an owner."""
        folder = self._folder(uid)
        with _errors(folder), suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def _folder(self, uid: str) -> str:
        """Text, as in `CdiDirectory._file`."""
        return f"{self.path}/{check_id(uid, 'UID')}"


def _read(path: str) -> bytes | None:
    with _errors(path):
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - see `CdiDirectory._file`
                return file.read()
        except FileNotFoundError:
            return None


def _write(path: str, content: bytes, effects: Effects) -> None:
    new = _unfinished(path)
    with _errors(path), effects(Point.CDI_WRITE):
        fd = _open_new(new)
        try:
            os.fchmod(fd, 0o644)
            left = memoryview(content)
            while left:
                left = left[os.write(fd, left) :]
        finally:
            os.close(fd)
    with _errors(path), effects(Point.CDI_RENAME):
        os.replace(new, path)  # noqa: PTH105 - see `CdiDirectory._file`


def _open_new(path: str) -> int:
    """A new file, which no other process has open, and which is no link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)  # noqa: PTH103, PTH120
    except FileExistsError:
        _remove(path)
    return os.open(path, flags)


def _unfinished(path: str) -> str:
    return f"{path}.new"


def _remove(path: str) -> bool:
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return False
    return True


def _errors(path: Path | str) -> OsErrorAs:
    return OsErrorAs(
        CdiError,
        "the file",
        path,
        remedy="check that the directory is mounted and neither full nor read-only",
    )
