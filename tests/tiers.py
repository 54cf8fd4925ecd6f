"""The tiers of the checks, run one after another: `python -m tests.tiers TIER…`, or all of them.

Each prints how long it took, and the last thing printed is a table of them all. A tier that fails
does not keep the next ones from running; the exit status is 1 then. Within a tier nothing is run
after a command that failed, except in `INDEPENDENT`.

While the tiers run that need no Kubernetes, its programs are built beside them, at low priority.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.cluster.cache import cache_root
from tests.cluster.side_by_side import WORKERS
from tests.cluster.versions import CHOICE, DEFAULT_KUBERNETES, REAL

_CHECKOUT: Final = Path(__file__).parents[1]
_BIN: Final = Path(sys.executable).parent

Command = tuple[str, ...]


def _pytest(*arguments: str) -> Command:
    return (sys.executable, "-m", "pytest", "--durations=10", *arguments)


def _tool(name: str, *arguments: str) -> Command:
    return (str(_BIN / name), *arguments)


def _cluster(*arguments: str) -> Command:
    return (sys.executable, "-m", "tests.cluster", *arguments)


def _on(kubernetes: str, *tests: str) -> Command:
    """These tests on that version, one after another."""
    return ("env", f"{CHOICE}={kubernetes}", *_pytest(*tests))


def _with_hypothesis() -> list[str]:
    """The unit tests' files that have random cases: to collect all others takes as long again."""
    files = sorted((_CHECKOUT / "tests" / "unit").rglob("test_*.py"))
    return [
        str(file.relative_to(_CHECKOUT))
        for file in files
        if "from hypothesis import" in file.read_text(encoding="utf-8")
    ]


# Some tests wait, for processes and sockets: a core that they leave idle takes another test.
_ALL_CORES: Final = (f"--numprocesses={(os.cpu_count() or 1) + 1}",)
_SIDE_BY_SIDE: Final = (f"--numprocesses={WORKERS}", "--dist=loadgroup")
_ON_CLUSTERS: Final = ("tests/kill", "tests/control_plane", "tests/cluster", "tests/e2e")
_AT_EACH_CHANGE: Final = ("-m", "not matrix")
_PROGRAMS: Final = (_cluster("packages"), _cluster("build"))
_IMAGE: Final = _cluster("image")
_BUILDS: Final = frozenset({*_PROGRAMS, _IMAGE, _cluster("build", "--all")})

# What depends on a server's own age, and is played by the newest one in `cluster`.
_WITHOUT_TAINTS: Final = (
    "tests/control_plane/without_taints",
    "tests/e2e/test_hidden_slices.py",
)
_BEFORE_1_37: Final = (
    "tests/control_plane/test_allocator_scheduler.py",
    "tests/control_plane/test_nominations.py",
    "tests/control_plane/test_controller_taint_rules.py",
    "tests/control_plane/test_controller_clock.py",
    "tests/control_plane/test_controller_late_scheduler.py",
)
_IN_BOTH_WAYS: Final = ("tests/e2e/test_examples.py", "tests/e2e/test_by_limits.py")
_WITHOUT_DRA: Final = (
    "tests/cluster/test_without_dra.py",
    "tests/control_plane/without_dra",
    "tests/e2e/test_without_dra.py",
    "tests/e2e/test_cluster_upgrade.py",
)

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
        _pytest(*_ALL_CORES, "-m", "hypothesis", "--hypothesis-profile=many", *_with_hypothesis()),
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
        _pytest(*_SIDE_BY_SIDE, *_AT_EACH_CHANGE, *_ON_CLUSTERS),
    ),
    "matrix": (
        _cluster("packages", "--browser"),
        _cluster("build", "--all"),
        _IMAGE,
        *(_on(each, "tests/e2e/test_versions.py") for each in REAL if each != DEFAULT_KUBERNETES),
        *(_on(each, *_WITHOUT_TAINTS) for each in ("1.34.4", "1.35.4")),
        _on("1.36.3", *_BEFORE_1_37, *_IN_BOTH_WAYS),
        _on("1.30.14", *_WITHOUT_DRA),
        _on(DEFAULT_KUBERNETES, "-m", "matrix", *_ON_CLUSTERS),
        ("env", "GCU_DRA_UPGRADE=all", *_pytest("tests/e2e/test_upgrade_with_claims.py")),
    ),
}
"""By name, what is run, in this order."""

EVERYTHING: Final = ("lint", "unit", "component", "property", "chart", "cluster")
"""What must pass at each change; the tests of `kill` and `control-plane` are in `cluster`, too.
`matrix` is run before a change of behaviour is called done."""

INDEPENDENT: Final = frozenset({"lint", "matrix"})
"""Tiers whose commands do not need each other: all of them are run, whichever fails."""

BUDGETS: Final[Mapping[str, float]] = {
    "lint": 40,
    "unit": 120,
    "component": 100,
    "property": 110,
    "chart": 85,
    "cluster": 1050,
}
"""How long a tier may take with everything built, as a multiple of `reference`, which takes about a
second. On a machine twice as quick it takes half of that, and what a tier waits for takes as long
as before: so `cluster` takes 770 times the reference on one, and 1,480 on the quickest. Who adds a
test to a tier keeps its budget: by a lower tier, or by sharing what is started."""

TOLERANCE: Final = 1.5
"""A tier fails that takes so many times its budget: no machine is always equally quick."""

_ROUNDS: Final = 1_700_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tier ended, and after how many seconds.

    Of these, `building` went by until what it needs was built; `processor` are the seconds of
    processors that its commands took. `reference` is what the loop took at that time.
    """

    tier: str
    seconds: float
    passed: bool
    building: float = 0.0
    processor: float = 0.0
    reference: float = 0.0

    @property
    def times(self) -> float:
        """How many times the reference it took, with everything built; 0 if not measured."""
        return (self.seconds - self.building) / self.reference if self.reference else 0.0

    def is_late(self) -> bool:
        """Whether it took longer than its budget allows."""
        return self.times > TOLERANCE * BUDGETS.get(self.tier, float("inf"))

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        budget = BUDGETS.get(self.tier)
        of = f"{self.times:7.0f} of {budget:4.0f}" if self.times and budget else ""
        return f"{self.tier:12}{verdict:8}{self.seconds:7.0f} s{self.processor:9.0f} s{of}"


def reference() -> float:
    """The seconds that a loop takes on all processors at once: what budgets are multiples of, as
    machines differ by two and more, and so does one from hour to hour."""
    loop = f"from tests.tiers import loop; loop({_ROUNDS})"
    started = time.monotonic()
    with_all = [
        subprocess.Popen([sys.executable, "-c", loop], cwd=_CHECKOUT)
        for _ in range(os.cpu_count() or 1)
    ]
    for each in with_all:
        each.wait()
    return time.monotonic() - started


def loop(rounds: int) -> str:
    """Work of the kind that tests do: objects of Python, and now and then bytes."""
    digest, seen = hashlib.sha256(), dict[int, str]()
    for number in range(rounds):
        seen[number % 1000] = str(number)
        if not number % 1000:
            digest.update("".join(seen.values()).encode())
    return digest.hexdigest()


def run(tier: str) -> Outcome:
    """Run the commands of a tier: all of them if they are independent, else up to the first one
    that fails."""
    started, before = time.monotonic(), _processor()
    print(f"== {tier}", flush=True)
    building, failed = 0.0, list[Command]()
    for command in TIERS[tier]:
        began = time.monotonic()
        if subprocess.run(command, cwd=_CHECKOUT, env=os.environ, check=False).returncode:
            failed.append(command)
        building += time.monotonic() - began if command in _BUILDS else 0.0
        if failed and tier not in INDEPENDENT:
            break
    for command in failed:  # at the end, where they are read
        print(f"== FAILED: {Path(command[0]).name} {shlex.join(command[1:])}", flush=True)
    seconds, processor = time.monotonic() - started, _processor() - before
    outcome = Outcome(tier, seconds, not failed, building, processor)
    print(f"== {outcome}\n", flush=True)
    return outcome


def _processor() -> float:
    """The seconds of processors that commands have taken. What they started and did not wait for,
    such as a cluster's own processes, is not in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def building(tiers: Sequence[str]) -> Iterator[subprocess.Popen[bytes] | None]:
    """Within it, what a later one of the tiers needs is built, by the process that it gives.

    Each of those tiers runs the same commands again: it waits for a build that is under way, says
    so, and says what a failed one says.
    """
    commands = dict.fromkeys(
        command for tier in tiers[1:] for command in TIERS[tier] if command in _BUILDS
    )
    if not commands:
        yield None
        return
    log = cache_root() / "build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"== what later tiers need is built beside the first ones: {log}\n", flush=True)
    script = " && ".join(shlex.join(command) for command in commands)
    command = ["nice", "-n", "15", "sh", "-c", script]
    with log.open("wb") as output:
        beside = subprocess.Popen(
            command, cwd=_CHECKOUT, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield beside
    finally:
        # It has ended long ago, unless somebody broke off; then its compilers end with it.
        with suppress(ProcessLookupError):
            os.killpg(beside.pid, signal.SIGTERM)
        beside.wait()


def main(names: Sequence[str]) -> int:
    """Run the named tiers, EVERYTHING without names; gives the exit status."""
    unknown = [name for name in names if name not in TIERS]
    if unknown:
        print(f"no tier {', '.join(unknown)}; there are {', '.join(TIERS)}", file=sys.stderr)
        return 2
    tiers = names or EVERYTHING
    with building(tiers):
        outcomes = [_measured(tier) for tier in tiers]
    print("tier        result       time  processor  times the reference, of its budget")
    for outcome in outcomes:
        print(outcome)
    seconds, processor = (sum(getattr(o, n) for o in outcomes) for n in ("seconds", "processor"))
    total = Outcome("all", seconds, all(each.passed for each in outcomes), processor=processor)
    print(total, flush=True)
    late = [each for each in outcomes if each.is_late()]
    for each in late:
        print(
            f"{each.tier} took {each.times / BUDGETS[each.tier]:.1f} times its budget "
            f"(tests/tiers.py); its dearest tests are listed at its end",
            flush=True,
        )
    return 0 if total.passed and not late else 1


def _measured(tier: str) -> Outcome:
    """Run it between two runs of the reference."""
    before = reference()
    outcome = run(tier)
    loops = (before + reference()) / 2
    return replace(outcome, reference=loops)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
