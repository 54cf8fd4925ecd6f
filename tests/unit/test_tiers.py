"""Which commands of a tier are run after one that failed."""

from __future__ import annotations

import sys

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
