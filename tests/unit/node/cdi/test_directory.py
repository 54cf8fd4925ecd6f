from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.effects import Point
from dra_driver.model.errors import InvalidValue
from dra_driver.node.cdi.directory import CdiDirectory, CdiError
from tests.unit.node.effects import Crash, Failing

NAME = "gcu.enflame.com-claim-uid-1.json"


def test_a_file_is_written_read_and_removed(tmp_path: Path) -> None:
    cdi = CdiDirectory(tmp_path / "cdi")
    assert cdi.read("uid-1") is None
    assert cdi.uids() == frozenset()
    cdi.write("uid-1", b"one")
    cdi.write("uid-1", b"two")
    assert cdi.read("uid-1") == b"two"
    assert [path.name for path in (tmp_path / "cdi").iterdir()] == [NAME]
    assert (tmp_path / "cdi" / NAME).stat().st_mode & 0o777 == 0o644
    assert cdi.remove("uid-1")
    assert not cdi.remove("uid-1")


def test_others_files_are_nobodys_business(tmp_path: Path) -> None:
    for name in ("enflame.com-gpu.yaml", "gcu.enflame.com-claim-.json", "gcu.enflame.com.json"):
        (tmp_path / name).touch()
    (tmp_path / NAME).touch()
    (tmp_path / "gcu.enflame.com-claim-uid-2.json.new").touch()
    assert CdiDirectory(tmp_path).uids() == {"uid-1", "uid-2"}


@pytest.mark.parametrize("point", [Point.CDI_WRITE, Point.CDI_RENAME])
def test_no_runtime_ever_sees_half_a_file(tmp_path: Path, point: Point) -> None:
    CdiDirectory(tmp_path).write("uid-1", b"old")
    cdi = CdiDirectory(tmp_path, effects=Failing(point, lambda: Crash("here")))
    with pytest.raises(Crash):
        cdi.write("uid-1", b"new")
    assert cdi.read("uid-1") == b"old"
    assert [path.name for path in tmp_path.glob("*.json")] == [NAME]


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "cdi").mkdir()
    (tmp_path / "cdi" / f"{NAME}.new").symlink_to(target)
    CdiDirectory(tmp_path / "cdi").write("uid-1", b"new")
    assert target.read_text() == "precious"


def test_two_claims_at_once_may_make_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def late(path: Path, **how: Any) -> None:
        mkdir(path)
        mkdir(path, **how)

    monkeypatch.setattr(Path, "mkdir", late)
    cdi = CdiDirectory(tmp_path / "cdi")
    cdi.write("uid-1", b"one")
    assert cdi.read("uid-1") == b"one"


@pytest.mark.parametrize("uid", ["", "..", "../x", "a/b", "x.json"])
def test_a_hostile_uid_touches_no_file(tmp_path: Path, uid: str) -> None:
    cdi = CdiDirectory(tmp_path / "cdi")
    for step in (cdi.read, cdi.remove):
        with pytest.raises(InvalidValue):
            step(uid)
    with pytest.raises(InvalidValue):
        cdi.write(uid, b"")
    assert not (tmp_path / "cdi").exists()


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    full = Failing(Point.CDI_RENAME, lambda: OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(CdiError, match=r"cannot be used: No space left on device; check"):
        CdiDirectory(tmp_path, effects=full).write("uid-1", b"x")
