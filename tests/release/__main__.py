"""The command line: `python -m tests.release --help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dra_driver.version import VERSION
from tests.cluster.errors import ClusterError
from tests.cluster.image.build import IMAGE_NAME, driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.processes import require_root
from tests.release.engines import ENGINES, build_with
from tests.release.helm import helm_program
from tests.release.manifests import write_all
from tests.release.oci import rewrite
from tests.release.release import URL, Plan, refuse_uncommitted, source_date, write_release
from tests.release.wheels import wheels

_REPOSITORY = "localhost/gcu-dra-driver"


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


def _image(options: argparse.Namespace) -> None:
    inputs = Inputs(options.base, snapshots=options.snapshots)
    name = f"{options.repository}:{options.tag}"
    if options.engine != "buildah":
        build_with(options.engine, inputs, name, _report)
        print(name)
        return
    require_root()
    archive = driver_archive(inputs, _report)
    if name != IMAGE_NAME:
        options.out.mkdir(parents=True, exist_ok=True)
        named = options.out / f"{name.rpartition('/')[2].replace(':', '-')}.tar"
        rewrite(archive, named, reference=name, epoch=source_date())
        archive = named
    print(f"{name}\n{archive}")


def _release(options: argparse.Namespace) -> None:
    plan = Plan(
        options.version,
        options.out,
        f"{options.repository}:{options.tag or options.version}",
        source_date(),
        options.draft,
        options.url.rstrip("/"),
    )
    plan.check()
    if not options.draft:
        refuse_uncommitted()
    archive = options.archive
    if archive is None:
        require_root()
        archive = driver_archive(Inputs(options.base, snapshots=options.snapshots), _report)
    with tempfile.TemporaryDirectory() as folder:
        write_release(
            plan,
            archive=archive,
            wheels=wheels(Path(folder)),
            helm=helm_program(_report),
            report=_report,
        )
    print(options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.release", description="What is published of the driver."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    manifests = command("manifests", _manifests, "write an install.yaml for each mode")
    manifests.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    manifests.add_argument(
        "--values", type=Path, metavar="FILE", help="values of the chart (default: its own)"
    )
    image = command("image", _image, "build the driver's image, unless built")
    image.add_argument("--engine", choices=ENGINES, default="buildah")
    image.add_argument("--tag", default=VERSION)
    image.add_argument("--out", type=Path, default=Path("build"), metavar="FOLDER")
    release = command("release", _release, "write all files of a release into a new folder")
    release.add_argument("--version", required=True)
    release.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    release.add_argument("--tag", default="", help="of the image (default: the version)")
    release.add_argument("--draft", action="store_true", help="also of what is not committed")
    release.add_argument(
        "--archive", type=Path, metavar="FILE", help="the image's OCI archive (default: build it)"
    )
    release.add_argument(
        "--url", default=URL, help="the folder of the files, for krew (default: %(default)s)"
    )
    for each in (image, release):
        each.add_argument("--repository", default=_REPOSITORY)
        each.add_argument(
            "--base",
            default="",
            metavar="NAME@DIGEST",
            help="from a registry (default, with buildah: a Debian made here)",
        )
        each.add_argument(
            "--snapshots",
            default="",
            metavar="URL",
            help="an archive of Debian's snapshots, for the pinned packages (default: today's)",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
