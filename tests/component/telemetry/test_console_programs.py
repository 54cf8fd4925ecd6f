"""What all of the project's commands have in common."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from dra_driver.version import VERSION

CHECKOUT: Final = Path(__file__).parents[3]
SCRIPTS: Final[dict[str, str]] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())[
    "project"
]["scripts"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_says_its_version(name: str) -> None:
    """Without any setting, as whoever asks has only the image."""
    module, _, function = SCRIPTS[name].partition(":")
    done = subprocess.run(
        [sys.executable, "-c", f"from {module} import {function}; {function}()", "--version"],
        cwd=CHECKOUT,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{name} {VERSION}\n"), done.stderr
