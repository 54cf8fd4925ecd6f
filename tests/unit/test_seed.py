"""Which cases a sample plays."""

from __future__ import annotations

import pytest

from tests import seed
from tests.seed import Sample, told


def sample(asked: str = "") -> Sample:
    return Sample(always=5, of_the_day=3, soak=20, asked=asked)


@pytest.fixture(autouse=True)
def a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "SEED", 0)
    monkeypatch.setattr(seed, "DAY", 7)


def test_some_are_played_always_and_others_each_day(monkeypatch: pytest.MonkeyPatch) -> None:
    first, day = [range(2), range(2, 4), range(4, 5)], 7_000_000
    assert sample().blocks(2) == [*first, range(day, day + 2), range(day + 2, day + 3)]
    monkeypatch.setattr(seed, "DAY", 8)
    assert sample().blocks(2)[:3] == first
    assert sample().blocks(3)[-1] == range(8_000_000, 8_000_003)


def test_a_soak_goes_on_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sample("all").blocks(100) == [range(20)]
    monkeypatch.setattr(seed, "SEED", 90)
    assert sample("all").blocks(100) == [range(90, 110)]
    assert sample("1").blocks(100) == [range(90, 91)]
    assert sample().blocks(100) == [range(90, 98)]


def test_a_failure_says_how_to_have_it_again() -> None:
    with pytest.raises(ValueError, match="x") as raised, told(12):
        raise ValueError("x")
    assert raised.value.__notes__ == ["again: GCU_SEED=12 GCU_CASES=1, and this test"]
