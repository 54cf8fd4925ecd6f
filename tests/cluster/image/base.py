"""The image's base where no registry is at hand: a minimal Debian with Python, by mmdebstrap."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from tests.cluster.build import Report
from tests.cluster.image.contained import run_contained

BASE_NAME = "localhost/gcu-dra-driver-base"

_SUITE = "bookworm"

# The state of Debian that a base has which is made from snapshots. A later one has security
# updates: docs/dev/image.md.
SNAPSHOT = "20261123T000000Z"
_ARCHIVES = (
    ("debian", _SUITE),
    ("debian", f"{_SUITE}-updates"),
    ("debian-security", f"{_SUITE}-security"),
)
_PACKAGES = "python3,ca-certificates"

# Nobody reads manuals or wants translations in a container; licences stay.
_EXCLUDED = ("doc", "info", "locale", "man")

_COMMAND = (
    "mmdebstrap",
    "--variant=minbase",
    f"--include={_PACKAGES}",
    # Without the hook the merge of /usr is done by a package that needs all of Perl: 50 MB.
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _EXCLUDED),
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
)

# Imports the tree as an image of one layer.
_DOCKERFILE = "FROM scratch\nADD base.tar /\n"


def command(tar: str, snapshots: str = "") -> list[str]:
    """Makes the tree. `snapshots` is the address of an archive of Debian's snapshots, from which
    it takes the packages of SNAPSHOT; without it, those that Debian's mirrors have now."""
    # A Release file of old is signed, and says that it is not valid any more.
    pinned = ["--aptopt=Acquire::Check-Valid-Until false"] if snapshots else []
    sources = [
        f"deb {snapshots.rstrip('/')}/{archive}/{SNAPSHOT}/ {suite} main"
        for archive, suite in _ARCHIVES
        if snapshots
    ]
    return [*_COMMAND, *pinned, _SUITE, tar, *sources]


def base_key(snapshots: str = "") -> str:
    """Names the base; the same as long as the command is."""
    words = repr((command("", snapshots), _DOCKERFILE, platform.machine()))
    return f"base-{hashlib.sha256(words.encode()).hexdigest()[:16]}"


def make_base(folder: Path, report: Report, snapshots: str = "") -> None:
    """Write to `folder` a build context whose image is the base. Raises BuildError."""
    run_contained(
        command(str(folder / "base.tar"), snapshots),
        title=f"base image, Debian {_SUITE}",
        report=report,
        folder=folder,
        network=True,
    )
    (folder / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
