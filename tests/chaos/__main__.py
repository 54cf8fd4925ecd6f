"""``make soak-chaos``: a cluster under churn and faults, an auditor, and a table of what it found.

Each allocator has its half of the time, on one cluster, with the same plan. The exit status is 1
where anything was violated or is left.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tests.chaos.auditor import Kind
from tests.chaos.plan import NODES, Fault, Plan, plan
from tests.chaos.play import Outcome, Play
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.image.build import driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra
from tests.e2e.installation import Installation

ALLOCATORS: Final = ("controller", "scheduler")
_RESTART: Final = {"crashLoopBackOff": {"maxContainerRestartPeriod": "10s"}}
"""Else the kubelet waits up to five minutes with a program that is killed again and again."""


def main() -> int:
    options = _options()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    chosen = options.allocator or ALLOCATORS
    steps = plan(seed, options.minutes * 60 / len(chosen))
    print(f"seed {seed}: {options.minutes:g} minutes, allocators {', '.join(chosen)}", flush=True)
    if options.list:
        print("\n".join(_listed(steps)))
        return 0
    try:
        outcomes = _played(steps, tuple(chosen))
    except ClusterError as error:
        print(f"soak-chaos: seed {seed}: {error}", file=sys.stderr)
        return 1
    print("\n".join(_told(outcomes)))
    print("\n".join(_table(outcomes)))
    print(json.dumps({"seed": seed, "minutes": options.minutes} | _numbers(outcomes)))
    return 1 if any(each.violations or each.left for each in outcomes.values()) else 0


def _played(steps: Plan, chosen: tuple[str, ...]) -> dict[str, Outcome]:
    begun = time.monotonic()

    def tell(line: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {line}", flush=True)

    archive = driver_archive(Inputs(), tell)
    settings = Settings(
        f"chaos-{os.getpid()}",
        kubernetes=chosen_with_dra(),
        nodes=NODES,
        kubelet_config=_RESTART,
    )
    cluster = Cluster.up(settings, owner=own_process(), report=tell)
    try:
        cluster.load_image(archive)
        driver = Installation(cluster)
        outcomes = {}
        for allocator in chosen:
            version = cluster.release.version
            driver.install(
                driver.values(allocator=allocator, schedulerVersion=version), report=tell
            )
            outcomes[allocator] = Play(driver, tell).run(steps)
            _tell_more(cluster, outcomes[allocator])
        return outcomes
    finally:
        cluster.down()


def _tell_more(cluster: Cluster, outcome: Outcome) -> None:
    """What a person would look for, while there is a cluster."""
    if outcome.violations or outcome.left:
        print(cluster.diagnostics(DRIVER_NAMESPACE))


def _listed(steps: Plan) -> Iterator[str]:
    together = sorted((*steps.churn, *steps.disturbances), key=lambda step: step.at)
    return (f"{step.at:7.1f} s  {step}" for step in together)


def _told(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    for allocator, outcome in outcomes.items():
        for violation in outcome.violations:
            yield f"{allocator}: VIOLATION {violation.kind}: {violation.text}"
        for left in outcome.left:
            yield f"{allocator}: LEFT {left}"


def _table(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    found = outcomes.values()
    yield _row("allocator", outcomes)
    yield _row("seconds", (f"{each.seconds:.0f}" for each in found))
    yield _row("pods", (each.pods for each in found))
    yield _row("  that ran", (each.ran for each in found))
    for fault in Fault:
        yield _row(fault, (each.faults[fault] for each in found))
    yield _row("looks", (each.looks for each in found))
    yield _row("  without an answer", (each.missed for each in found))
    for kind in Kind:
        yield _row(f"VIOLATION {kind}", (each.auditor.counts()[kind] for each in found))
    yield _row("LEFT at the end", (len(each.left) for each in found))


def _row(title: str, values: Iterable[object]) -> str:
    return f"{title:<62}" + "".join(f"{each!s:>12}" for each in values)


def _numbers(outcomes: Mapping[str, Outcome]) -> dict[str, object]:
    return {
        allocator: {
            "pods": each.pods,
            "ran": each.ran,
            "faults": sum(each.faults.values()),
            "violations": len(each.violations),
            "left": len(each.left),
        }
        for allocator, each in outcomes.items()
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak-chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="of all allocators together")
    parser.add_argument("--seed", type=int, help="of what happens; by default another each time")
    parser.add_argument("--allocator", action="append", choices=ALLOCATORS, help="this one only")
    parser.add_argument("--list", action="store_true", help="print what would happen, and end")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
