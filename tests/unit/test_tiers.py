"""What is run of the tiers, and what is said of their times."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import tiers

GOOD = (sys.executable, "-c", "print('good')")
BAD = (sys.executable, "-c", "print('bad'); raise SystemExit(1)")


@pytest.fixture(params=sorted(tiers.INDEPENDENT))
def independent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def printed(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """What the commands themselves printed."""
    return [each for each in capfd.readouterr().out.splitlines() if each in {"good", "bad"}]


def played(monkeypatch: pytest.MonkeyPatch, tier: str, *commands: tiers.Command) -> tiers.Outcome:
    monkeypatch.setattr(tiers, "TIERS", {tier: commands})
    return tiers.run(tier)


def test_all_tools_of_lint_are_run(
    independent: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not played(monkeypatch, independent, BAD, GOOD, BAD, GOOD).passed
    assert printed(capfd) == ["bad", "good", "bad", "good"]
    assert played(monkeypatch, independent, GOOD, GOOD).passed


def test_lint_is_independent() -> None:
    assert "lint" in tiers.INDEPENDENT
    assert tiers.TIERS.keys() >= tiers.INDEPENDENT


def test_other_tiers_end_with_the_first_failure(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not played(monkeypatch, "unit", GOOD, BAD, GOOD).passed
    assert printed(capfd) == ["good", "bad"]
    assert played(monkeypatch, "unit", GOOD, GOOD).passed


def test_the_command_that_failed_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    played(monkeypatch, "unit", BAD)
    assert "== FAILED: python" in capfd.readouterr().out


def test_a_tier_that_does_not_exist(capfd: pytest.CaptureFixture[str]) -> None:
    assert tiers.main(["lints"]) == 2
    assert "no tier lints" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "building", "late"),
    [(120.0, 0.0, False), (180.0, 0.0, True), (180.0, 60.0, False)],
    ids=["within", "above", "most of it went by in a build"],
)
def test_a_tier_that_takes_longer_than_its_budget_fails(
    seconds: float,
    building: float,
    late: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The budget is 100 times the reference, which took a second here."""
    ended = tiers.Outcome("unit", seconds, passed=True, building=building)
    monkeypatch.setattr(tiers, "BUDGETS", {"unit": 100})
    monkeypatch.setattr(tiers, "reference", lambda: 1.0)
    monkeypatch.setattr(tiers, "run", lambda _: ended)
    assert tiers.main(["unit"]) == int(late)
    assert ("unit took 1.8 times its budget" in capfd.readouterr().out) == late


def test_every_tier_of_a_check_has_a_budget() -> None:
    assert tiers.BUDGETS.keys() == set(tiers.EVERYTHING)


def test_the_reference_does_the_same_work_each_time() -> None:
    assert tiers.loop(5000) == tiers.loop(5000) != tiers.loop(6000)


def test_what_a_later_tier_needs_is_built_beside_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once, though two tiers need it; nothing is built for the first tier, which begins at once."""
    done = tmp_path / "done"
    build = (sys.executable, "-c", f"open({str(done)!r}, 'a').write('built ')")
    monkeypatch.setattr(tiers, "TIERS", {"a": (GOOD,), "b": (build, GOOD), "c": (build,)})
    monkeypatch.setattr(tiers, "_BUILDS", frozenset({build}))
    monkeypatch.setattr(tiers, "cache_root", lambda: tmp_path)
    with tiers.building(["b", "a"]):
        pass
    assert not done.exists()
    with tiers.building(["a", "b", "c"]) as beside:
        assert beside is not None
        assert beside.wait(60) == 0
    assert done.read_text() == "built "
