"""Install the Debian packages that the cluster, image building and the browser tests need, when
missing."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.cache import build_once, cache_root
from tests.cluster.errors import BuildError

LIST = Path(__file__).parent / "debian-packages.txt"
BROWSER = Path(__file__).parents[1] / "browser" / "debian-packages.txt"

# Another apt on the machine (a fresh one often updates itself) is waited for.
_APT = ("apt-get", "-q", "-o", "DPkg::Lock::Timeout=600")


def needed_packages(listed: Path = LIST) -> tuple[str, ...]:
    """The names in such a list."""
    lines = (line.partition("#")[0].strip() for line in listed.read_text().splitlines())
    return tuple(line for line in lines if line)


def missing_packages(listed: Path = LIST) -> tuple[str, ...]:
    """Those of a list that dpkg does not know as installed.

    Raises BuildError where there is no dpkg: the list must then be installed by hand.
    """
    needed = needed_packages(listed)
    query = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n"]
    try:
        shown = subprocess.run(
            [*query, *needed],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # "no packages found": the very thing asked
            text=True,
        ).stdout
    except FileNotFoundError as error:
        raise BuildError(
            f"dpkg-query: not found; install what {listed.name} lists in this system's own way"
        ) from error
    installed = {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}
    return tuple(name for name in needed if name not in installed)


def install_missing(report: Callable[[str], None], listed: Path = LIST) -> None:
    """Install what is missing; nothing is asked of the network when nothing is.

    Raises BuildError with the command that failed.
    """
    missing = missing_packages(listed)
    if not missing:
        return
    started = time.monotonic()
    report(f"Debian packages: installing {' '.join(missing)}")
    _apt("update")
    _apt("install", "--yes", "--no-install-recommends", *missing)
    report(f"Debian packages: installed in {time.monotonic() - started:.0f} s")


def unpacked(name: str, report: Callable[[str], None]) -> Path:
    """The folder with the files of a Debian package, in the machine's cache. Nothing is installed:
    the package's scripts would start its service.

    Raises BuildError with the command that failed.
    """

    def make(folder: Path) -> None:
        report(f"Debian package {name}: unpacking it")
        # As root, apt would have another user write into the folder.
        download = ("download", "-o", "APT::Sandbox::User=root", name)
        try:
            _apt(*download, within=folder)
        except BuildError:  # the lists are old, or not there; to read them anew, root is needed
            _apt("update")
            _apt(*download, within=folder)
        [archive] = folder.glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, folder], check=True)
        archive.unlink()

    return build_once(cache_root() / "packages" / name, make)


def _apt(*arguments: str, within: Path | None = None) -> None:
    command = [*_APT, *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    status = subprocess.run(command, env=environment, cwd=within, check=False).returncode
    if status:
        raise BuildError(
            f"{' '.join(command)}: exit status {status}; it needs root and Debian's package "
            f"sources; the packages can also be installed by hand"
        )
