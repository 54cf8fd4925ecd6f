"""The pictures of the pages: what the programs of `make picture` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.cluster import state
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.packages import BROWSER, install_missing

_IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    draw: Callable[[Cluster, argparse.Namespace], None],
) -> int:
    """Call `draw` with the cluster that the arguments name; gives the program's exit status."""
    parser.add_argument("--name", default=state.DEFAULT, help="the cluster (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        install_missing(print, BROWSER)
        draw(Cluster.attach(options.name), options)
    except ClusterError as error:
        print(f"picture: {error}", file=sys.stderr)
        return 1
    return 0


def write(name: str, drawn: bytes, most: int) -> None:
    """Write a picture in PNG. Raises ClusterError where it has more than `most` bytes."""
    if len(drawn) > most:
        raise ClusterError(f"{name}: {len(drawn)} bytes; at most {most} are for a page")
    file = _IMAGES / name
    file.write_bytes(drawn)
    print(f"{file}: {len(drawn)} bytes")
