"""The chart's package, as `helm package` makes it, but with the same bytes each time."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from tests.release.archives import Entry, write_tar_gz


def write_package(chart: Path, path: Path, epoch: int) -> None:
    """Write ``NAME-VERSION.tgz``: all files of the folder `chart`, but those that .helmignore
    names, below a folder of the chart's name."""
    ignored = _ignored(chart)
    entries = (
        Entry(f"{chart.name}/{file.relative_to(chart).as_posix()}", file)
        for file in chart.rglob("*")
        if file.is_file() and not _is_ignored(file.relative_to(chart), ignored)
    )
    write_tar_gz(path, entries, epoch)


def _ignored(chart: Path) -> list[str]:
    lines = (chart / ".helmignore").read_text(encoding="utf-8").splitlines()
    return [line.rstrip("/") for line in lines if line and not line.startswith("#")]


def _is_ignored(path: Path, patterns: list[str]) -> bool:
    """The patterns of the chart have no slashes within: each is of a name, at any depth."""
    return any(fnmatch(part, pattern) for part in path.parts for pattern in patterns)
