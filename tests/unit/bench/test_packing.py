"""The measurement of packing: its bound, its mapping of the trace, its policies."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bench.bound import Repacking, least_cards
from bench.cards import BASELINES, SLICES, Fleet
from bench.trace import Job, in_mode, load

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)


def job(mode: str, slices: int, start: int = 0, end: int = 1) -> Job:
    return Job(mode, slices, cpu=1000, memory=1024, start=start, end=end)


@cache
def fewest(sizes: tuple[int, ...], cards: tuple[int, ...] = ()) -> int:
    """By trying every way: `cards` are the rests of those begun."""
    if not sizes:
        return len(cards)
    first, *others = sizes
    rest = tuple(others)
    ways = [fewest(rest, tuple(sorted((*cards, SLICES - first))))]
    for n, left in enumerate(cards):
        if left >= first:
            begun = (*cards[:n], left - first, *cards[n + 1 :])
            ways.append(fewest(rest, tuple(sorted(begun))))
    return min(ways)


@pytest.mark.parametrize("sizes", [(1, 3, 6), (1, 2, 3, 4, 5, 6)], ids=["DRS", "shared"])
def test_the_bound_is_never_more_than_needed(sizes: tuple[int, ...]) -> None:
    draw = random.Random(0)
    for _ in range(200):
        shares = sorted(draw.choices(sizes, k=draw.randint(1, 7)), reverse=True)
        exact, bound = fewest(tuple(shares)), least_cards(Counter(shares))
        assert bound <= exact
        if len(sizes) == 3:
            assert bound == exact


def test_who_may_repack_makes_room() -> None:
    cards = Repacking(2)
    running = [cards.start(n, job("shared", size)) for n, size in enumerate((4, 4, 2, 3))]
    assert running == [True, True, True, False]
    cards.stop(0)
    assert cards.start(4, job("shared", 3))
    assert not cards.start(5, job("drs", 1))


@pytest.mark.parametrize(
    ("row", "jobs"),
    [
        pytest.param("p,4000,8192,0,0,,LS,Running,1,2,1", [], id="no GPU"),
        pytest.param("p,4000,8192,2,1000,,LS,Running,1,2,1", [("whole", 6)] * 2, id="two"),
        pytest.param("p,4000,8192,1,1000,,BE,Running,1,2,1", [("whole", 6)], id="one"),
        pytest.param("p,4000,8192,1,460,,BE,Running,1,2,1", [("shared", 3)], id="shared"),
        pytest.param("p,4000,8192,1,20,,Burstable,Running,1,2,1", [("shared", 1)], id="least"),
        pytest.param("p,4000,8192,1,300,,LS,Running,1,2,1", [("drs", 3)], id="DRS, rounded up"),
        pytest.param("p,4000,8192,1,900,,Guaranteed,Running,1,2,1", [("drs", 6)], id="all of DRS"),
    ],
)
def test_the_mapping(
    row: str, jobs: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "openb_pod_list_default.csv"
    trace.write_text(f"{HEADER}\n{row}\n", encoding="utf-8")
    monkeypatch.setenv("GCU_BENCH_TRACE", str(tmp_path))
    assert [(each.mode, each.slices) for each in load()] == jobs


def test_all_in_one_mode() -> None:
    mixed = [job("whole", 6), job("shared", 2), job("drs", 3)]
    assert [(each.mode, each.slices) for each in in_mode(mixed, "drs")] == [
        ("whole", 6),
        ("drs", 3),
        ("drs", 3),
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("first_fit", (0, 0)), ("spread", (1, 0)), ("upstream", (1, 0))],
)
def test_a_policy_chooses(policy: str, expected: tuple[int, int]) -> None:
    fleet = Fleet.of(4, 2, random.Random(0))
    choose = BASELINES[policy]
    assert fleet.start(0, job("shared", 2), BASELINES["first_fit"])
    assert fleet.start(1, job("shared", 2), choose)
    card, _ = fleet.running[1]
    assert (card.node, card.number) == expected


def test_a_card_is_in_one_mode_at_a_time() -> None:
    fleet = Fleet.of(1, 1, random.Random(0))
    first_fit = BASELINES["first_fit"]
    assert fleet.start(0, job("shared", 2), first_fit)
    assert not fleet.start(1, job("drs", 1), first_fit)
    fleet.stop(0)
    assert fleet.start(1, job("drs", 1), first_fit)
