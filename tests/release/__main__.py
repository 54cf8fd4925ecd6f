"""The command line: `python -m tests.release --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.release.helm import helm_program
from tests.release.manifests import write_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; gives the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (ClusterError, OSError) as error:
        print(f"tests.release: {error}", file=sys.stderr)
        return 1
    return 0


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _manifests(options: argparse.Namespace) -> None:
    for file in write_all(helm_program(_report), options.out, options.values):
        print(file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.release", description="What is published of the driver."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "write an install.yaml for each way to serve GCUs"
    manifests = commands.add_parser("manifests", help=text, description=text)
    manifests.set_defaults(run=_manifests)
    manifests.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    manifests.add_argument(
        "--values", type=Path, metavar="FILE", help="values of the chart (default: its own)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
