"""The version of Kubernetes that somebody asks for is the one that is built and started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cluster import __main__ as command_line
from tests.cluster import reuse, state
from tests.cluster.errors import ClusterError
from tests.cluster.settings import Settings
from tests.cluster.versions import (
    CHOICE,
    DEFAULT_KUBERNETES,
    REAL,
    WITHOUT_DRA,
    WITHOUT_TAINTS,
    chosen_kubernetes,
    chosen_with_dra,
    chosen_with_groups,
    programs,
)

CHECKOUT = Path(__file__).parents[3]
OLDEST = REAL[0]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The versions that were built; none is chosen. Nothing is really built."""
    monkeypatch.delenv(CHOICE, raising=False)
    found: list[str] = []
    monkeypatch.setattr(command_line, "build_all", lambda version, _: found.append(version))
    monkeypatch.setattr(command_line, "build", lambda _program, _report: None)
    return found


@pytest.mark.parametrize("target", ["demo", "cluster-up"])
def test_a_target_starts_the_version_that_it_is_given(target: str) -> None:
    """Of the commands that make would run, the last one starts the cluster."""
    environment = {name: each for name, each in os.environ.items() if name != "MAKEFLAGS"}
    command = ["make", "--dry-run", "--no-print-directory", target, f"K8S={OLDEST}"]
    printed = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert f"--kubernetes {OLDEST}" in printed.splitlines()[-1]


def test_a_build_without_a_version_is_of_the_newest(built: list[str]) -> None:
    """All of `make test` runs on it, and so does `make demo`."""
    assert command_line.main(["build"]) == 0
    assert built == [DEFAULT_KUBERNETES]


def test_it_is_of_the_chosen_version(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, OLDEST)
    assert command_line.main(["build"]) == 0
    assert built == [OLDEST]


@pytest.mark.parametrize(
    ("flags", "versions"),
    [(["--all"], [*REAL]), (["--kubernetes", OLDEST], [OLDEST])],
    ids=["all", "one"],
)
def test_a_build_of_what_is_named(built: list[str], flags: list[str], versions: list[str]) -> None:
    assert command_line.main(["build", *flags]) == 0
    assert built == versions


def test_what_plays_an_older_version_is_the_newest() -> None:
    for played in (WITHOUT_TAINTS, WITHOUT_DRA):
        assert programs(played) == programs(DEFAULT_KUBERNETES)
        flags = Settings("one", kubernetes=played).flags("kube-scheduler")
        assert "--emulated-version=kube=1.34" in flags
        assert not Settings("one", kubernetes=played).flags("kubelet")


def test_the_choice_is_the_default_version_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHOICE, raising=False)
    assert chosen_kubernetes() == chosen_with_dra() == DEFAULT_KUBERNETES


def test_an_unknown_choice_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHOICE, "1.2.3")
    assert command_line.main(["build"]) == 1
    assert "1.2.3 is not among the versions" in capsys.readouterr().err


def test_tests_of_dra_refuse_a_version_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, OLDEST)
    with pytest.raises(ClusterError, match=rf"{OLDEST} has no DRA, which this test needs"):
        chosen_with_dra()


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ("1.36.3", DEFAULT_KUBERNETES),
        ("1.38.0-beta.0", "1.38.0-beta.0"),
        (OLDEST, DEFAULT_KUBERNETES),
    ],
)
def test_tests_of_groups_run_on_a_version_that_has_them(
    monkeypatch: pytest.MonkeyPatch, chosen: str, found: str
) -> None:
    monkeypatch.setenv(CHOICE, chosen)
    assert chosen_with_groups() == found


def test_a_cluster_of_another_version_is_not_used_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    up = SimpleNamespace(settings=Settings("default", kubernetes=OLDEST, nodes=2))
    monkeypatch.setattr(reuse, "sweep", list)
    monkeypatch.setattr(state, "load", lambda _: up)
    wanted = Settings("default", kubernetes=DEFAULT_KUBERNETES, nodes=2)
    with pytest.raises(ClusterError, match=f"with 2 nodes of Kubernetes {OLDEST}; take it"):
        reuse.up_or_attach(wanted, print)
