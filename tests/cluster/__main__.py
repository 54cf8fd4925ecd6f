"""The command line: `python -m tests.cluster --help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import state
from tests.cluster.build import build, build_all
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.image.build import IMAGE_NAME, driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.packages import BROWSER, install_missing
from tests.cluster.processes import require_root
from tests.cluster.reuse import up_or_attach
from tests.cluster.settings import Settings
from tests.cluster.shell import run_shell
from tests.cluster.teardown import sweep, tear_down
from tests.cluster.versions import (
    PARTS,
    REAL,
    RELEASES,
    SCHEDULER_THAT_FORGETS,
    chosen_kubernetes,
)

_NEXT = """
Next:
  {shell:48}  kubectl and helm; on-NODE COMMAND, ctr-NODE
  {down:48}  remove it
From elsewhere on this machine:
  kubectl --kubeconfig {kubeconfig} get nodes
"""


class _Progress:
    """Prints lines, each with the seconds since the command began."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, line: str) -> None:
        print(f"[{time.monotonic() - self._started:6.1f} s] {line}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; gives the exit status."""
    try:
        options = _parser().parse_args(arguments)
        if options.run is not _build:
            require_root()
        status: int = options.run(options, _Progress())
    except ClusterError as error:
        print(f"tests.cluster: {error}", file=sys.stderr)
        return 1
    return status


def _up(options: argparse.Namespace, report: _Progress) -> int:
    settings = Settings(options.name, kubernetes=options.kubernetes, nodes=options.nodes)
    cluster = up_or_attach(settings, report)
    shell, down = "make cluster-shell", "make cluster-down"
    if options.name != state.DEFAULT:
        shell, down = (
            f"python -m tests.cluster {command} --name {options.name}"
            for command in ("shell", "down")
        )
    print(_NEXT.format(kubeconfig=cluster.kubeconfig, shell=shell, down=down), end="")
    return 0


def _down(options: argparse.Namespace, report: _Progress) -> int:
    for name in state.names() if options.all else (options.name,):
        report(f"{name}: removed" if tear_down(name) else f"{name}: nothing to remove")
    for name in sweep():
        report(f"{name}: removed, as its owner had died")
    return 0


def _shell(options: argparse.Namespace, report: _Progress) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    return run_shell(Cluster.attach(options.name), command)


def _build(options: argparse.Namespace, report: _Progress) -> int:
    for version in REAL if options.all else (options.kubernetes,):
        report(f"programs of Kubernetes {version}: {build_all(version, report)}")
    report(f"parts of Kubernetes alone: {build(PARTS, report)}")
    if options.all:
        report(f"one more kube-scheduler: {build(SCHEDULER_THAT_FORGETS, report)}")
    return 0


def _packages(options: argparse.Namespace, report: _Progress) -> int:
    install_missing(report)
    if options.browser:
        install_missing(report, BROWSER)
    report("Debian packages: all there")
    return 0


def _image(options: argparse.Namespace, report: _Progress) -> int:
    archive = driver_archive(Inputs(options.base, snapshots=options.snapshots), report)
    print(f"{IMAGE_NAME}\n{archive}")
    return 0


def _load_image(options: argparse.Namespace, report: _Progress) -> int:
    cluster = Cluster.attach(options.name)
    cluster.load_image(options.archive)
    report(f"{options.archive.name}: loaded on {len(cluster.nodes)} nodes")
    return 0


def _list(options: argparse.Namespace, report: _Progress) -> int:
    for name in state.names():
        found = state.load(name)
        if found is not None:
            owner = f"owned by process {found.owner.pid}" if found.owner else "stays until down"
            settings = found.settings
            print(f"{name:20} {settings.kubernetes:10} {settings.nodes} nodes, {owner}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster", description="A real Kubernetes on this machine."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: object, text: str, *, named: bool = True
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        if named:
            added.add_argument(
                "--name", default=state.DEFAULT, help="the cluster (default: %(default)s)"
            )
        return added

    up = command("up", _up, "bring a cluster up, unless it is; it stays until `down`")
    up.add_argument("--nodes", type=int, default=2, help="how many nodes (default: 2)")
    down = command("down", _down, "remove a cluster, if it is there")
    down.add_argument("--all", action="store_true", help="all clusters of this machine")
    shell = command("shell", _shell, "a shell, or one command, with the cluster's tools")
    shell.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    load = command("load-image", _load_image, "import an image archive on every node")
    load.add_argument("archive", type=Path, metavar="ARCHIVE")
    image = command("image", _image, "build the driver's image, unless built", named=False)
    image.add_argument(
        "--base",
        default="",
        metavar="NAME@DIGEST",
        help="from a registry (default: a Debian made here)",
    )
    image.add_argument(
        "--snapshots",
        default="",
        metavar="URL",
        help="an archive of Debian's snapshots, for the pinned packages (default: today's)",
    )
    command("list", _list, "the clusters of this machine", named=False)
    build = command("build", _build, "build what the cluster runs, unless built", named=False)
    packages = command("packages", _packages, "install missing Debian packages", named=False)
    packages.add_argument("--browser", action="store_true", help="also those of tests/browser")
    known = ", ".join(RELEASES)
    up.add_argument(
        "--kubernetes",
        default=chosen_kubernetes(),
        metavar="VERSION",
        help=f"one of {known} (default: %(default)s)",
    )
    which = build.add_mutually_exclusive_group()
    which.add_argument(
        "--kubernetes",
        default=chosen_kubernetes(),
        metavar="VERSION",
        help=f"one of {known} (default: %(default)s, which all of `make test` runs on)",
    )
    which.add_argument("--all", action="store_true", help="all that `make test-matrix` runs on")
    return parser


if __name__ == "__main__":
    sys.exit(main())
