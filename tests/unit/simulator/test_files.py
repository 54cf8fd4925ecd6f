"""The tree on disk: links that resolve, real device nodes where they can be made, the wrapper."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dra_driver.model.errors import GcuError
from dra_driver.simulator import files
from dra_driver.simulator.machine import SimulatedMachine
from dra_driver.simulator.tree import File, Link, Node, TreeDeviceNode


def refuse(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_links_resolve_to_the_card_below_its_switch(tmp_path: Path) -> None:
    SimulatedMachine.create("s60-ecc-8", tmp_path, plain_device_files=True)

    card = (tmp_path / "sys/bus/pci/devices/0000:83:00.0").resolve()

    bridges = card.relative_to(tmp_path.resolve() / "sys/devices").parts
    assert bridges == ("pci0000:80", "0000:80:01.0", "0000:81:00.0", "0000:82:00.0", "0000:83:00.0")
    assert (card / "enflame/gcu4/dev").read_text() == "240:4\n"


def test_device_nodes_are_what_this_process_may_make(tmp_path: Path) -> None:
    """Character devices for root, plain files for others: each who runs this sees their side."""
    allowed = files.can_make_devices(tmp_path)

    machine = SimulatedMachine.create("s60-4", tmp_path)

    mode = (tmp_path / "dev/gcu2").stat()
    assert machine.state().char_devices == allowed
    assert stat.S_ISCHR(mode.st_mode) == allowed
    assert stat.S_ISREG(mode.st_mode) == (not allowed)
    if allowed:
        assert (os.major(mode.st_rdev), os.minor(mode.st_rdev)) == (240, 2)


def test_without_the_right_to_make_devices_they_are_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "can_make_devices", lambda _: False)

    machine = SimulatedMachine.create("s60-4", tmp_path)

    assert not machine.state().char_devices
    assert (tmp_path / "dev/gcu0").is_file()


def test_the_probe_tells_what_mknod_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "mknod", lambda path, *_: Path(path).touch())
    assert files.can_make_devices(tmp_path)
    assert list(tmp_path.iterdir()) == []

    monkeypatch.setattr(os, "mknod", refuse)
    assert not files.can_make_devices(tmp_path)


def test_a_probe_left_by_a_kill_is_made_anew(tmp_path: Path) -> None:
    allowed = files.can_make_devices(tmp_path)
    (tmp_path / "probe.new").touch()

    assert files.can_make_devices(tmp_path) == allowed
    assert list(tmp_path.iterdir()) == []


def test_a_character_device_that_cannot_be_made_says_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setattr(os, "mknod", refuse)

    with pytest.raises(GcuError, match="--plain-device-files"):
        files.synchronize(tmp_path, {"dev/gcu0": TreeDeviceNode(240, 0, char=True)})


def test_synchronize_changes_only_what_differs(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    first: dict[str, Node] = {"sys/a/one": File("1"), "sys/a/two": File("2"), "sys/link": Link("a")}
    files.synchronize(tmp_path, first)
    kept = (tmp_path / "sys/a/one").stat().st_ino

    files.synchronize(
        tmp_path, {"sys/a/one": File("1"), "sys/b/two": File("2"), "sys/link": Link("b")}
    )

    assert (tmp_path / "sys/a/one").stat().st_ino == kept
    assert not (tmp_path / "sys/a/two").exists()
    assert (tmp_path / "sys/link/two").read_text() == "2"


def test_removal_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    root = tmp_path / "node"
    machine = SimulatedMachine.create("s60-4", root, plain_device_files=True)
    (root / "sys/outside").symlink_to(outside)

    machine.destroy()

    assert (outside / "kept").exists()
    assert not root.exists()


def test_the_state_is_removed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever order the file system lists it in: a kill before it leaves a machine."""
    machine = SimulatedMachine.create("s60-4", tmp_path / "node", plain_device_files=True)
    listed = sorted(files._existing(machine.root, files.OWNED), reverse=True)
    state = machine.root / "state" / "state.json"
    listed = [path for path in listed if path.name == state.name] + [
        path for path in listed if path.name != state.name
    ]
    remove = files._remove

    def killed(path: Path) -> None:
        if path.name == "description.json":
            raise KeyboardInterrupt
        remove(path)

    with monkeypatch.context() as cut:
        cut.setattr(files, "_existing", lambda *_: listed)
        cut.setattr(files, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            machine.destroy()

    SimulatedMachine.create("s60-4", machine.root, plain_device_files=True).destroy()
    assert not machine.root.exists()
