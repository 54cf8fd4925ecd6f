"""A machine's folders below a host root: what sysfs and /dev may show."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.errors import HardwareError
from tests.fuzz.engine import Subject
from tests.fuzz.hostile import DamagedJson

_MACHINE: Final[dict[str, Any]] = {
    "functions": [
        {
            "name": "0000:0d:00.0",
            "above": ["pci0000:00", "0000:00:01.0", "0000:0c:00.0"],
            "driver": ["enflame", "gcu3"],
            "attributes": {"vendor": "0x1e36", "class": "0x120000", "numa_node": "1"},
        },
        {
            "name": "0000:0e:00.0",
            "above": ["pci0000:00", "0000:00:02.0"],
            "driver": ["zixiao", "gcu0"],
            "attributes": {"vendor": "0x1ea0", "class": "0x120000", "numa_node": "-1"},
        },
    ],
    "version": "1.5.20260710",
    "dev": ["gcu3", "gcu3vid0", "gcu0", "gcuctl"],
}


def _read(data: bytes, folder: Path) -> object:
    root = folder / "host"
    shutil.rmtree(root, ignore_errors=True)
    _build(root, json.loads(data))
    sysfs = Sysfs(root)
    assert isinstance(sysfs.driver_version(), str | None)
    functions = sysfs.functions()
    for function in functions:
        assert function.minor == sysfs.minor(function.address) or _twice(functions)
        if function.minor is not None:
            _look_at_nodes(sysfs, function.minor, root)
    return functions


def _look_at_nodes(sysfs: Sysfs, minor: int, root: Path) -> None:
    try:
        nodes = sysfs.nodes(minor)
    except HardwareError:
        return
    assert {Path(node.host_path).parent for node in nodes} == {root / "dev"}
    assert {Path(node.path).parent for node in nodes} == {Path("/dev")}


def _twice(functions: Sequence[Any]) -> bool:
    addresses = [function.address for function in functions]
    return len(set(addresses)) < len(addresses)


def _build(root: Path, machine: Mapping[str, Any]) -> None:
    links = root / "sys/bus/pci/devices"
    for folder in (links, root / "dev", root / "sys/module/enflame"):
        folder.mkdir(parents=True)
    _write(root / "sys/module/enflame/version", machine["version"])
    for name in machine["dev"]:
        (root / "dev" / _as_name(name)).touch()
    for function in machine["functions"]:
        above = Path(*map(_as_name, function["above"]))
        place = above / _as_name(function["name"])
        (root / "sys/devices" / place / Path(*map(_as_name, function["driver"]))).mkdir(
            parents=True, exist_ok=True
        )
        for attribute, text in function["attributes"].items():
            _write(root / "sys/devices" / place / attribute, text)
        link = links / place.name
        link.unlink(missing_ok=True)
        link.symlink_to(Path("../../../devices") / place)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _as_name(text: str) -> str:
    """The text if a folder can have such an entry."""
    data = text.encode("utf-8", "surrogatepass")
    impossible = not data or len(data) > 255 or b"/" in data or b"\0" in data or text in {".", ".."}
    return "x" if impossible else os.fsdecode(data)


SUBJECTS: Final = (Subject("sysfs", DamagedJson([_MACHINE], strings_only=True), _read),)
