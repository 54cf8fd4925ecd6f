"""A cluster's record is read back as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import state
from tests.cluster.errors import ClusterError
from tests.cluster.processes import Process
from tests.cluster.settings import Settings
from tests.cluster.state import State


@pytest.fixture(autouse=True)
def run_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run root of the test's own."""
    monkeypatch.setattr(state, "RUN_ROOT", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("owner", [None, Process(12, 345)], ids=["stays", "owned"])
def test_round_trip(owner: Process | None, run_root: Path) -> None:
    settings = Settings(
        "one",
        nodes=2,
        feature_gates={"DynamicResourceAllocation": True},
        extra_flags={"kubelet": ("--v=4", "--one=two")},
        kubelet_config={"podsPerCore": 3},
        keep_nodes_ready=True,
    )
    saved = State(settings, slot=7, owner=owner)
    (run_root / "one").mkdir(parents=True)
    saved.save()
    assert state.load("one") == saved
    assert state.names() == ("one",)


def test_unknown_cluster() -> None:
    assert state.load("nobody") is None
    assert state.names() == ()


@pytest.mark.parametrize("name", ["", "A", "../up", "a/b", "1st", "a" * 21, "a.b"])
def test_names_that_are_no_folder_names(name: str) -> None:
    with pytest.raises(ClusterError, match="lower-case letters"):
        state.run_directory(name)


def test_flags_come_after_the_feature_gates() -> None:
    settings = Settings(
        "one", feature_gates={"A": True, "B": False}, extra_flags={"kubelet": ("--v=4",)}
    )
    assert settings.flags("kubelet") == ("--feature-gates=A=true,B=false", "--v=4")
    assert settings.flags("kube-proxy") == ("--feature-gates=A=true,B=false",)
    assert Settings("two").flags("kubelet") == ()
