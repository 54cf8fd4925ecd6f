"""The placer knows which devices kube-scheduler takes: kube-scheduler's allocator is asked for the
same nodes and claims.

Left out is what no agent publishes or the API server drops: devices that are allocated and not
published any more (kubernetes#140802), attributes that are lists, and selectors that fail, with
which kube-scheduler ends the pod's attempt on all nodes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import parse_claim
from controller.allocator.ownership import request_owners
from controller.allocator.packing.policy import SchedulerPolicy
from controller.allocator.results import allocation_status
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors
from tests.cluster.build import Report, build
from tests.cluster.versions import DRA_ALLOCATOR, PARTS
from tests.control_plane.interfaces import CPU, NET, device_class
from tests.control_plane.published_cases import NODE, Case, case, case_beside
from tests.seed import Sample, told
from tests.unit.controller.allocator.build import ALL_CLASSES, state

CASES: Final = Sample(always=300, of_the_day=300, soak=100_000)
_BLOCK: Final = 500
_CLASSES: Final = ALL_CLASSES | {driver: device_class(driver) for driver in (NET, CPU)}
_SELECTORS: Final = Selectors()
_STEPS: Final = 100_000_000  # kube-scheduler's own bound is its time

Results = list[list[Object]] | None
"""Of each claim; None where there are no devices for all of them."""


@pytest.fixture(scope="session")
def allocator(cluster_report: Report) -> Path:
    """kube-scheduler's allocator as a program."""
    return build(PARTS, cluster_report) / DRA_ALLOCATOR


@pytest.mark.parametrize("written", [case, case_beside], ids=["of ours", "of other drivers, too"])
@pytest.mark.parametrize("seeds", CASES.blocks(_BLOCK))
def test_the_devices_that_kube_scheduler_takes(
    seeds: range, written: Callable[[int], Case], allocator: Path
) -> None:
    cases = [written(seed) for seed in seeds]
    served = 0
    for seed, given, taken in zip(seeds, cases, _upstream(allocator, cases), strict=True):
        with told(seed):
            assert _placed(given) == taken
        served += taken is not None
    if len(seeds) == _BLOCK:  # both verdicts are put to the test
        assert _BLOCK // 5 < served < _BLOCK * 4 // 5


def _upstream(allocator: Path, cases: Iterable[Case]) -> list[Results]:
    questions = [
        {
            "node": NODE,
            "slices": given.slices,
            "classes": list(_CLASSES.values()),
            "held": given.held,
            "claims": given.claims,
        }
        for given in cases
    ]
    asked = "\n".join(map(json.dumps, questions))
    done = subprocess.run([allocator], input=asked, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [each["results"] and [*map(_without_ids, each["results"])] for each in answers]


def _placed(given: Case) -> Results:
    known = state(
        given.slices, given.held, classes=_CLASSES, selectors=_SELECTORS, for_scheduler=True
    )
    wanted = [
        parse_claim(each, _CLASSES, others=request_owners(each, known).others)
        for each in given.claims
    ]
    nodes = known.numbers.set_of([NODE])
    outcome = allocate(known, wanted, nodes, policy=SchedulerPolicy(), steps=_STEPS)
    if not isinstance(outcome, Allocation):
        assert not outcome.stopped
        return None
    allocations = [
        allocation_status(each, devices, NODE, _CLASSES, timestamp="", new_share_id=str)
        for each, devices in zip(wanted, outcome.assignments, strict=True)
    ]
    return [_without_ids(each["devices"]["results"]) for each in allocations]


def _without_ids(results: Sequence[Object]) -> list[Object]:
    """The ids of shares are random."""
    return [{key: value for key, value in each.items() if key != "shareID"} for each in results]
