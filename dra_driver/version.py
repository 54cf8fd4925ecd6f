"""The version of all programs. The build reads it here, and the chart must have the same."""

from __future__ import annotations

import argparse
from typing import Final

VERSION: Final = "0.1.0"


def add_version_flag(parser: argparse.ArgumentParser) -> None:
    """``--version`` prints the program's name and version, and exits."""
    parser.add_argument(
        "--version",
        action="version",
        version=f"%(prog)s {VERSION}",
        help="print the version and exit",
    )
