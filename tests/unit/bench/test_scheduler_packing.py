"""Named nodes and first fit, against the controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fleet import CARDS
from bench.ours import Ours
from bench.scheduler_packing import Outcome, churn
from bench.trace import Job, load_pods
from controller.allocator.packing.policy import Policy, SchedulerPolicy
from tests.unit.bench.test_packing import HEADER


def pod(cards: int, *, mode: str = "whole", slices: int = 6, start: int = 0, end: int = 1) -> Job:
    return Job(mode, slices, cpu=0, memory=0, start=start, end=end, cards=cards)


@pytest.mark.parametrize(
    ("policy", "apart"),
    [
        pytest.param(Policy(), 0, id="controller"),
        pytest.param(SchedulerPolicy(), 1, id="scheduler"),
    ],
)
def test_cards_apart(policy: Policy, apart: int) -> None:
    """After one card, two of the last four are on one switch; first fit takes one of each."""
    allocator, outcome = Ours([CARDS], policy), Outcome()
    for number, cards in enumerate((1, 2)):
        assert outcome.start(allocator, number, pod(cards))
    assert (outcome.slices, outcome.several, outcome.apart) == (18, 1, apart)


def test_a_pod_that_ends_makes_room() -> None:
    pods = [pod(8), pod(8, start=100), pod(8, start=160)]
    outcome = churn(pods, lambda: Ours([CARDS], SchedulerPolicy()))
    assert outcome.slices == 2 * 8 * 6


def test_a_pod_of_the_trace_has_all_its_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ("p,4000,8192,2,1000,,LS,Running,1,2,1", "p,4000,8192,1,460,,BE,Running,1,2,1")
    trace = tmp_path / "openb_pod_list_default.csv"
    trace.write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    monkeypatch.setenv("GCU_BENCH_TRACE", str(tmp_path))
    found = [(job.mode, job.slices, job.cards) for job in load_pods()]
    assert found == [("whole", 6, 2), ("shared", 3, 1)]
