"""Types of paths, for settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator


def _absolute(path: Path) -> Path:
    # Other programs get these paths, such as the kubelet, and have other working directories.
    if not path.is_absolute():
        raise ValueError("must be an absolute path")
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
