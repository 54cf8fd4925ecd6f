"""The link to the vendor's library, and mounts that no longer show what the node has."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.hardware.vendor_files import VendorMounts

TOOL = Path("/usr/local/efsmi/efsmi")
LIBRARY = Path("/usr/node-lib/libefml.so")
# As the kernel prints it: id, parent, device, root, mount point, options.
MOUNT = "{0} 40 254:0 {1} {2} ro,relatime master:1 - ext4 /dev/vda rw\n"


@pytest.fixture
def mountinfo(tmp_path: Path) -> Path:
    return tmp_path / "mountinfo"


def written(*mounts: tuple[str, str]) -> str:
    return "".join(MOUNT.format(40 + number, *each) for number, each in enumerate(mounts))


@pytest.mark.parametrize(
    ("root", "point", "now"),
    [
        ("/usr/local/efsmi", "/usr/local/efsmi", "/usr/local/efsmi//deleted"),
        ("/usr/local/efsmi", "/usr/local/efsmi", "/usr/local/efsmi.old"),
        ("/usr/local", "/usr/local", "/usr/local.old"),
        ("/usr/lib", "/usr/node-lib", "/usr/lib//deleted"),
        ("/opt/a/libefml.so.1.0.0", "/usr/lib/libefml.so", "/opt/a/libefml.so.1.0.0//deleted"),
    ],
    ids=["removed", "renamed", "above the tool", "of the library", "a file of the runtime"],
)
def test_a_mount_whose_directory_the_node_has_replaced_is_named(
    mountinfo: Path, root: str, point: str, now: str
) -> None:
    mountinfo.write_text(written(("/", "/"), (root, point)))
    mounts = VendorMounts(TOOL, LIBRARY, mountinfo)
    assert mounts.problem is None
    mountinfo.write_text(written(("/", "/"), (now, point)))
    assert mounts.problem == (
        f"{point} was replaced on the node, and this container still has the old one"
    )


def test_other_mounts_do_not_count(mountinfo: Path) -> None:
    mountinfo.write_text(written(("/", "/"), ("/etc/hosts", "/etc/hosts"), ("/a", "/usr/local/e")))
    mounts = VendorMounts(TOOL, LIBRARY, mountinfo)
    mountinfo.write_text(
        written(("/", "/"), ("/etc/hosts//deleted", "/etc/hosts"), ("/a//deleted", "/usr/local/e"))
    )
    assert mounts.problem is None
    mountinfo.write_text(written(("/", "/"), ("/x", TOOL.as_posix())))
    assert mounts.problem is None


def test_a_mount_point_with_a_blank_and_a_tool_on_the_path(
    mountinfo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "of the vendor"
    folder.mkdir()
    (folder / "efsmi").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    point = str(folder).replace(" ", r"\040")
    mountinfo.write_text(written(("/opt", point)))
    mounts = VendorMounts(Path("efsmi"), None, mountinfo)
    mountinfo.write_text(written(("/opt//deleted", point)))
    assert mounts.problem is not None
    assert str(folder) in mounts.problem


def test_without_mountinfo_nothing_is_known(mountinfo: Path) -> None:
    assert VendorMounts(TOOL, LIBRARY, mountinfo).problem is None
