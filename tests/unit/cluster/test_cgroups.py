"""Groups are made so that processes can enter them, in both versions of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import cgroups


@pytest.fixture
def hierarchies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders that look like the root of a v1 hierarchy, of v1's cpuset, and of v2."""
    found = {name: tmp_path / name for name in ("memory", "cpuset", "unified")}
    for folder in found.values():
        folder.mkdir()
    monkeypatch.setattr(cgroups, "hierarchies", lambda: tuple(found.values()))
    return found


def test_groups_of_components_and_nodes_in_every_hierarchy(hierarchies: dict[str, Path]) -> None:
    cgroups.create("one", ("gcu-node-1", "gcu-node-2"))
    assert cgroups.exists("one")
    for hierarchy in hierarchies.values():
        made = {path.name for path in (hierarchy / "gcu-dra" / "one").iterdir()}
        assert made == {"components", "gcu-node-1", "gcu-node-2"}
    assert cgroups.components("one") == hierarchies["memory"] / "gcu-dra/one/components"
    assert cgroups.kubelet_root("one", "gcu-node-1") == "/gcu-dra/one/gcu-node-1"


def test_empty_cpuset_is_filled_from_its_parent(hierarchies: dict[str, Path]) -> None:
    group = hierarchies["cpuset"] / "gcu-dra"
    group.mkdir()
    (hierarchies["cpuset"] / "cpuset.cpus").write_text("0-1\n")
    (group / "cpuset.cpus").write_text("\n")
    cgroups.create("one", ())
    assert (group / "cpuset.cpus").read_text() == "0-1\n"


def test_controllers_are_handed_down(hierarchies: dict[str, Path]) -> None:
    root = hierarchies["unified"]
    (root / "cgroup.controllers").write_text("memory\n")
    (root / "cgroup.subtree_control").write_text("")
    cgroups.create("one", ())
    assert (root / "cgroup.subtree_control").read_text() == "+memory"


def test_removal_takes_the_parent_with_the_last_cluster(hierarchies: dict[str, Path]) -> None:
    cgroups.create("one", ("gcu-node-1",))
    cgroups.create("two", ())
    cgroups.remove("one")
    assert not cgroups.exists("one")
    assert cgroups.exists("two")
    cgroups.remove("two")
    assert [list(folder.iterdir()) for folder in hierarchies.values()] == [[], [], []]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("/sys/fs/cgroup/memory/gcu-dra/other/gcu-node-1", True),
        ("/sys/fs/cgroup/memory/gcu-dra/other", True),
        ("4:memory:/gcu-dra/other/components", True),
        ("4:memory:/gcu-dra/one/components", False),
        ("/sys/fs/cgroup/memory/gcu-dra/one", False),
        ("/sys/fs/cgroup/memory/gcu-dra", False),
        ("4:memory:/system.slice", False),
    ],
)
def test_whose_a_group_is(group: str, expected: bool) -> None:
    assert cgroups.is_of_another(group, "one") is expected
