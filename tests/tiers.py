"""The tiers of the checks, run one after another: `python -m tests.tiers TIER…`, or all of them.

Each prints how long it took, and the last thing printed is a table of them all. A tier that fails
does not keep the next ones from running; the exit status is 1 then. Within a tier nothing is run
after a command that failed, except in `INDEPENDENT`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.side_by_side import WORKERS

_CHECKOUT: Final = Path(__file__).parents[1]
_BIN: Final = Path(sys.executable).parent

Command = tuple[str, ...]


def _pytest(*arguments: str) -> Command:
    return (sys.executable, "-m", "pytest", *arguments)


def _tool(name: str, *arguments: str) -> Command:
    return (str(_BIN / name), *arguments)


_ALL_CORES: Final = ("--numprocesses=auto",)
_SIDE_BY_SIDE: Final = (f"--numprocesses={WORKERS}", "--dist=loadgroup", "--durations=30")
_PROGRAMS: Final = (
    (sys.executable, "-m", "tests.cluster", "packages"),
    (sys.executable, "-m", "tests.cluster", "build"),
)
_IMAGE: Final = (sys.executable, "-m", "tests.cluster", "image")

TIERS: Final[Mapping[str, tuple[Command, ...]]] = {
    "lint": (
        _tool("ruff", "check", "."),
        _tool("ruff", "format", "--check", "."),
        _tool("mypy"),
        _tool("lint-imports"),
    ),
    "unit": (_pytest(*_ALL_CORES, "tests/unit"),),
    "component": (_pytest(*_ALL_CORES, "tests/component"),),
    "property": (
        _pytest(*_ALL_CORES, "tests/property"),
        _pytest(*_ALL_CORES, "tests/unit", "-m", "hypothesis", "--hypothesis-profile=many"),
    ),
    "chart": (*_PROGRAMS, _pytest(*_ALL_CORES, "tests/chart")),
    "kill": (*_PROGRAMS, _pytest("tests/kill")),
    "control-plane": (
        *_PROGRAMS,
        _pytest(*_SIDE_BY_SIDE, "-m", "control_plane", "tests/control_plane", "tests/cluster"),
    ),
    "cluster": (
        *_PROGRAMS,
        _IMAGE,
        _pytest(*_SIDE_BY_SIDE, "tests/kill", "tests/control_plane", "tests/cluster", "tests/e2e"),
    ),
}
"""By name, what is run, in this order."""

EVERYTHING: Final = ("lint", "unit", "component", "property", "chart", "cluster")
"""What must pass; the tests of the other two are in `cluster`, too."""

INDEPENDENT: Final = frozenset({"lint"})
"""Tiers whose commands do not need each other: all of them are run, whichever fails."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tier ended, and after how many seconds."""

    tier: str
    seconds: float
    passed: bool

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return f"{self.tier:12}{verdict:8}{self.seconds:7.0f} s"


def run(tier: str) -> Outcome:
    """Run the commands of a tier: all of them if they are independent, else up to the first one
    that fails."""
    started = time.monotonic()
    print(f"== {tier}", flush=True)
    endings = (_succeeds(command) for command in TIERS[tier])
    passed = all(list(endings) if tier in INDEPENDENT else endings)
    outcome = Outcome(tier, time.monotonic() - started, passed)
    print(f"== {outcome}\n", flush=True)
    return outcome


def _succeeds(command: Command) -> bool:
    """Run the command. If it fails, print which one it was."""
    passed = subprocess.run(command, cwd=_CHECKOUT, env=os.environ, check=False).returncode == 0
    if not passed:
        print(f"== FAILED: {Path(command[0]).name} {shlex.join(command[1:])}", flush=True)
    return passed


def main(names: Sequence[str]) -> int:
    """Run the named tiers, EVERYTHING without names; gives the exit status."""
    unknown = [name for name in names if name not in TIERS]
    if unknown:
        print(f"no tier {', '.join(unknown)}; there are {', '.join(TIERS)}", file=sys.stderr)
        return 2
    outcomes = [run(tier) for tier in names or EVERYTHING]
    print("tier        result       time")
    for outcome in outcomes:
        print(outcome)
    total = Outcome("all", sum(each.seconds for each in outcomes), all(e.passed for e in outcomes))
    print(total, flush=True)
    return 0 if total.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
