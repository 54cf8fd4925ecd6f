"""Makes the machine's files on disk what `tree` says, changing only what differs."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import stat
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

import dra_driver
from dra_driver.model.errors import GcuError
from dra_driver.simulator.tree import File, Link, Node, TreeDeviceNode

logger = logging.getLogger(__name__)

OWNED: Final = ("sys", "dev", "bin", "state")

# -I -S: neither the caller's variables nor site-packages, which the tool does not need and whose
# import would take longer than its work. So the package's place is said in words.
_WRAPPER: Final = """\
#!/bin/sh
exec {python} -I -S -c {program} {root} "$@"
"""
_PROGRAM: Final = """\
import sys
sys.path.append({package!r})
from dra_driver.simulator.efsmi import main
sys.exit(main(sys.argv[1], sys.argv[2:]))"""


def can_make_devices(folder: Path) -> bool:
    """Whether this process may make character devices in `folder`: found out by making one,
    as root of a user namespace or without CAP_MKNOD may not. The machine's lock is held."""
    probe = folder / "probe.new"
    # That of a process which was killed here.
    probe.unlink(missing_ok=True)
    try:
        os.mknod(probe, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        return False
    probe.unlink()
    return True


def synchronize(root: Path, nodes: Mapping[str, Node]) -> None:
    """Make ``sys`` and ``dev`` below `root` hold exactly `nodes`; the machine's lock is held.

    A card appears in ``sys/bus/pci/devices`` last and goes from there first, so that a reader
    who finds it there finds the rest.
    """
    wanted = {root / path: node for path, node in nodes.items()}
    # Both folders are there even on a machine that has lost all its cards.
    leaves = [*nodes, "sys/bus/pci/devices/card", "dev/node"]
    folders = {root / folder for leaf in leaves for folder in PurePath(leaf).parents}
    for path in _existing(root):
        if path not in wanted and not (path in folders and _is_folder(path)):
            _remove(path)
    for folder in sorted(folders):
        folder.mkdir(parents=True, exist_ok=True)
    for path, node in sorted(wanted.items(), key=lambda item: isinstance(item[1], Link)):
        if not _is(path, node):
            _make(root, path, node)


def write_wrapper(root: Path) -> None:
    """Write ``bin/efsmi``, which runs this package with this interpreter on `root`."""
    package = str(Path(dra_driver.__file__).resolve().parent.parent)
    text = _WRAPPER.format(
        python=shlex.quote(sys.executable),
        program=shlex.quote(_PROGRAM.format(package=package)),
        root=shlex.quote(str(root)),
    )
    wrapper = root / "bin" / "efsmi"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Put in place by rename: a program that is being executed cannot be written.
    temporary = root / "state" / "efsmi.new"
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(0o755)
    temporary.replace(wrapper)


def remove_all(root: Path) -> None:
    """Remove what `create` made, and `root` when nothing else is in it.

    The state goes last: who is killed here leaves a machine, which can be destroyed or made again.
    """
    state = root / "state" / "state.json"
    for path in (*(each for each in _existing(root, OWNED) if each != state), state):
        _remove(path)
    for name in OWNED:
        if (root / name).is_dir():
            (root / name).rmdir()
    try:
        root.rmdir()
    except OSError as error:
        # Something else lies there, or it is a mount point: not ours to remove.
        if error.errno not in {errno.ENOTEMPTY, errno.EBUSY}:
            raise


def _existing(root: Path, names: tuple[str, ...] = ("sys/bus", "sys", "dev")) -> list[Path]:
    """What lies below the folders, the deepest first; links are not followed."""
    found: dict[Path, None] = {}
    for name in names:
        for folder, folders, files in os.walk(root / name, topdown=False):
            found.update(dict.fromkeys(Path(folder) / one for one in (*files, *folders)))
    return list(found)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove(path: Path) -> None:
    if _is_folder(path):
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _is(path: Path, node: Node) -> bool:
    try:
        mode = path.lstat()
        match node:
            case File(text):
                return stat.S_ISREG(mode.st_mode) and path.read_text(encoding="utf-8") == text
            case Link(target):
                return path.is_symlink() and str(path.readlink()) == target
            case TreeDeviceNode(major, minor, char) if char:
                return stat.S_ISCHR(mode.st_mode) and mode.st_rdev == os.makedev(major, minor)
            case TreeDeviceNode():
                return stat.S_ISREG(mode.st_mode)
    except FileNotFoundError:
        return False


def _make(root: Path, path: Path, node: Node) -> None:
    """Make it aside and rename it into place, so that nobody reads half of it."""
    temporary = root / "state" / "node.new"
    temporary.unlink(missing_ok=True)
    match node:
        case File(text):
            temporary.write_text(text, encoding="utf-8")
        case Link(target):
            temporary.symlink_to(target)
        case TreeDeviceNode(major, minor, char):
            kind = stat.S_IFCHR if char else stat.S_IFREG
            try:
                os.mknod(temporary, 0o666 | kind, os.makedev(major, minor) if char else 0)
            except PermissionError as error:
                raise GcuError(
                    f"cannot make the device node {path}: {error.strerror}",
                    remedy="run as root with CAP_MKNOD, or with --plain-device-files",
                ) from error
            temporary.chmod(0o666)
    temporary.replace(path)
