"""The image's base where no registry is at hand: a minimal Debian with Python, by mmdebstrap."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from tests.cluster.build import Report
from tests.cluster.image.contained import run_contained

BASE_NAME = "localhost/gcu-dra-driver-base"

_SUITE = "bookworm"
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
    _SUITE,
)

# Imports the tree as an image of one layer.
_DOCKERFILE = "FROM scratch\nADD base.tar /\n"


def base_key() -> str:
    """Names the base; the same as long as the command is."""
    words = repr((_COMMAND, _DOCKERFILE, platform.machine()))
    return f"base-{hashlib.sha256(words.encode()).hexdigest()[:16]}"


def make_base(folder: Path, report: Report) -> None:
    """Write to `folder` a build context whose image is the base. Raises BuildError."""
    run_contained(
        [*_COMMAND, folder / "base.tar"],
        title=f"base image, Debian {_SUITE}",
        report=report,
        folder=folder,
        network=True,
    )
    (folder / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
