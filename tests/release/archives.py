"""Archives that have the same bytes whenever they are made of the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive. `content` is its bytes, or the file that has them."""

    name: str
    content: bytes | Path
    executable: bool = False


def write_tar(out: IO[bytes] | gzip.GzipFile, entries: Iterable[Entry], epoch: int) -> None:
    """An uncompressed tar, sorted by name, of root's files as of `epoch`, seconds since 1970."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for each in sorted(entries, key=lambda entry: entry.name):
            info = tarfile.TarInfo(each.name)
            info.mtime, info.mode = epoch, 0o755 if each.executable else 0o644
            if isinstance(each.content, bytes):
                info.size = len(each.content)
                archive.addfile(info, io.BytesIO(each.content))
            else:
                info.size = each.content.stat().st_size
                with each.content.open("rb") as file:
                    archive.addfile(info, file)


def write_tar_gz(path: Path, entries: Iterable[Entry], epoch: int) -> None:
    """That, compressed; neither the file's name nor a time is in it."""
    with path.open("wb") as file, compressed(file) as out:
        write_tar(out, entries, epoch)


def compressed(out: IO[bytes]) -> gzip.GzipFile:
    """Writes to `out` what gzip makes of what it is given."""
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0)
