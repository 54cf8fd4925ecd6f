"""The shell of `make cluster-shell`, without a cluster behind it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import pytest

from dra_driver.version import VERSION
from tests.cluster import state
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.shell import run_shell

CHECKOUT: Final = Path(__file__).parents[3]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = SimpleNamespace(
        directory=tmp_path, programs=tmp_path / "programs", nodes=(), environment=dict
    )
    return cast("Cluster", made)


@pytest.mark.parametrize(
    ("command", "by_hand", "status"),
    [
        pytest.param(["false"], True, 1, id="one command"),
        pytest.param([], False, 1, id="commands through a pipe"),
        pytest.param([], True, 0, id="a shell that a person leaves"),
    ],
)
def test_the_status(
    monkeypatch: pytest.MonkeyPatch,
    cluster: Cluster,
    command: list[str],
    by_hand: bool,
    status: int,
) -> None:
    monkeypatch.setenv("SHELL", "false")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: by_hand))
    assert run_shell(cluster, command) == status


def test_kubectl_finds_the_plugin_of_this_checkout(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    beside = cluster.directory / "kubectl_gcu"
    beside.mkdir()
    (beside / "__init__.py").write_text("raise ImportError('another package')")
    monkeypatch.chdir(cluster.directory)
    assert run_shell(cluster, ["kubectl-gcu", "--version"]) == 0
    assert capfd.readouterr().out == f"kubectl-gcu {VERSION}\n"


def test_make_hands_on_the_command_as_it_was_typed(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/bash\nexec "${@:5}"\n')  # after: -m tests.cluster shell --
    python.chmod(0o755)
    command = 'echo "a  b", $((1 + 1)) | cat'
    made = subprocess.run(
        ["make", "-s", "cluster-shell", f"COMMAND={command}", f"VENV={tmp_path}"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == "a  b, 2\n"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        (state.DEFAULT, "`make cluster-up` makes one"),
        ("mine", "`python -m tests.cluster up --name mine` makes one"),
    ],
)
def test_without_a_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, remedy: str
) -> None:
    monkeypatch.setattr(state, "RUN_ROOT", tmp_path)
    with pytest.raises(ClusterError, match=remedy):
        Cluster.attach(name)
