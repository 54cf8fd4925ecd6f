"""The version of all programs. The build reads it here, and the chart must have the same."""

from __future__ import annotations

import argparse
import json
import platform
from typing import Final

VERSION: Final = "0.1.0"


def version_info() -> bytes:
    """What ``/version`` of a program answers, in the form of Kubernetes' components
    (apimachinery/pkg/version/types.go): JSON with ``gitVersion`` and its two numbers."""
    major, minor, *_ = VERSION.split(".")
    python = platform.python_version()
    found = {"major": major, "minor": minor, "gitVersion": f"v{VERSION}", "pythonVersion": python}
    return json.dumps(found).encode()


def add_version_flag(parser: argparse.ArgumentParser) -> None:
    """``--version`` prints the program's name and version, and exits."""
    parser.add_argument(
        "--version",
        action="version",
        version=f"%(prog)s {VERSION}",
        help="print the version and exit",
    )
