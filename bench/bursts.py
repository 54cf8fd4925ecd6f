"""What becomes of bursts of pods by limits on a real cluster without DRA: two nodes, 12 cards.

Each burst is 50 pods of mixed sizes at once, which ask for more than there is; the next one comes
when all cards are free again. Beside it, what the allocator of clusters with DRA grants of the same
pods in their order, and the most that any could. Needs root, like the tests on clusters.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import median

from bench.ours import Ours
from bench.real_nodes import real_nodes
from bench.report import result, say, table
from bench.trace import Job
from controller.allocator.packing.policy import Policy
from tests.cluster.versions import chosen_without_dra
from tests.e2e.bursts import SLICES, Outcome, Request, burst, mixed
from tests.e2e.installation import CARDS, MACHINES
from tests.e2e.without_dra import OldInstallation

_NODES = tuple(CARDS[machine] for machine in MACHINES)


@dataclass(frozen=True, slots=True)
class Row:
    """One burst. `asked`, `dra` and `most` are slices: of all pods, granted by the allocator of
    clusters with DRA, and an upper bound of what can be granted."""

    seed: int
    asked: int
    outcome: Outcome
    dra: int
    most: int


def run(seeds: Iterable[int], pods: int) -> list[Row]:
    """A burst for each seed, one after the other on one cluster."""
    with _installed() as driver:
        return [_one(driver, seed, mixed(Random(seed), pods)) for seed in seeds]


@contextmanager
def _installed() -> Iterator[OldInstallation]:
    with real_nodes(chosen_without_dra()) as cluster:
        driver = OldInstallation(cluster)
        driver.load_scheduler()
        driver.install(report=say)
        yield driver


def _one(driver: OldInstallation, seed: int, requests: Sequence[Request]) -> Row:
    namespace = f"burst-{seed}"
    driver.wait_for_rest()
    driver.cluster.kubectl("create", "namespace", namespace)
    outcome = burst(driver, namespace, requests)
    say(f"{namespace}: {outcome}")
    driver.cluster.kubectl("delete", "pods", "--all", "--namespace", namespace)
    asked = sum(each.slices for each in requests)
    return Row(seed, asked, outcome, granted_with_dra(requests), min(asked, SLICES * sum(_NODES)))


def granted_with_dra(requests: Iterable[Request]) -> int:
    """Slices that the allocator grants of them, on nodes of as many cards."""
    allocator = Ours(_NODES, Policy())
    jobs = [Job(each.mode, each.slices, 0, 0, 0, 0) for each in requests]
    return sum(job.slices for number, job in enumerate(jobs) if allocator.start(number, job))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bursts", description=__doc__)
    parser.add_argument("--bursts", type=int, default=20)
    parser.add_argument("--pods", type=int, default=50, help="in each burst")
    parser.add_argument("--seed", type=int, default=1, help="of the first one")
    given = parser.parse_args()
    rows = run(range(given.seed, given.seed + given.bursts), given.pods)
    columns = ["seed", "run", "not admitted", "failed", "no room", "seconds", "slices asked"]
    table(
        f"{given.bursts} bursts of {given.pods} pods; slices granted",
        [*columns, "device plugin", "allocator of DRA", "upper bound"],
        [_cells(each) for each in rows],
    )
    result(figures(rows, given.bursts * given.pods))


def figures(rows: Sequence[Row], pods: int) -> dict[str, float]:
    """Of all bursts, which had so many pods together."""
    outcomes = [each.outcome for each in rows]
    refused = sum(len(each.refusals) for each in outcomes)
    most = sum(each.most for each in rows)
    return {
        "pods": pods,
        "running": sum(each.running for each in outcomes),
        "not_admitted": refused,
        "not_admitted_rate": refused / pods,
        "failed": sum(each.failed for each in outcomes),
        "seconds": round(median(each.seconds for each in outcomes), 1),
        "slices_asked": sum(each.asked for each in rows),
        "slices_granted": sum(each.granted for each in outcomes),
        "slices_granted_with_dra": sum(each.dra for each in rows),
        "slices_upper_bound": most,
        "packed": round(sum(each.granted for each in outcomes) / most, 4),
        "packed_with_dra": round(sum(each.dra for each in rows) / most, 4),
    }


def _cells(row: Row) -> tuple[object, ...]:
    its = row.outcome
    counts = (its.running, len(its.refusals), its.failed, its.waiting, round(its.seconds, 1))
    return (row.seed, *counts, row.asked, its.granted, row.dra, row.most)


if __name__ == "__main__":
    main()
