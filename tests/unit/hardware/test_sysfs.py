"""PCI functions and device nodes below a host root."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dra_driver.hardware.sysfs import GcuFunction, Sysfs
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

ADDRESS = PciAddress(0, 0x0D, 0, 0)
PATH = "pci0000:00/0000:00:01.0/0000:0c:00.0"


def add(
    root: Path,
    name: str = "0000:0d:00.0",
    *,
    above: str = PATH,
    driver: str | None = "enflame/gcu3",
    attributes: Mapping[str, str] | None = None,
) -> Path:
    """A PCI function as the kernel shows it; gives its folder."""
    folder = root / "sys/devices" / above / name
    (folder / driver if driver else folder).mkdir(parents=True)
    texts = {"vendor": "0x1e36", "class": "0x120000", "numa_node": "1"} | dict(attributes or {})
    for attribute, text in texts.items():
        (folder / attribute).write_text(f"{text}\n")
    links = root / "sys/bus/pci/devices"
    links.mkdir(parents=True, exist_ok=True)
    (links / name).symlink_to(f"../../../devices/{above}/{name}")
    return folder


def test_a_function(tmp_path: Path) -> None:
    add(tmp_path)
    assert Sysfs(tmp_path).functions() == (
        GcuFunction(ADDRESS, 3, 1, "pci0000:00", ("0000:00:01.0", "0000:0c:00.0")),
    )


@pytest.mark.parametrize(
    ("attributes", "is_gcu"),
    [
        ({"vendor": "0x1ea0"}, True),
        ({"class": "0x120001"}, True),
        ({"class": "0x060400"}, False),
        ({"vendor": "0x10b5"}, False),
        ({"vendor": ""}, False),
    ],
    ids=["re-brand", "other interface", "bridge of the vendor", "other vendor", "empty"],
)
def test_which_functions_are_gcus(tmp_path: Path, attributes: dict[str, str], is_gcu: bool) -> None:
    add(tmp_path, attributes=attributes)
    assert bool(Sysfs(tmp_path).functions()) == is_gcu


@pytest.mark.parametrize(
    ("driver", "minor"),
    [("enflame/gcu12", 12), ("zixiao/gcu0", 0), (None, None), ("enflame/gcuctl", None)],
    ids=["vendor's", "Tencent's", "not taken", "something else"],
)
def test_minor(tmp_path: Path, driver: str | None, minor: int | None) -> None:
    add(tmp_path, driver=driver)
    assert Sysfs(tmp_path).minor(ADDRESS) == minor
    assert Sysfs(tmp_path).functions()[0].minor == minor


@pytest.mark.parametrize(("text", "node"), [("-1", None), ("0", 0), ("", None), ("x", None)])
def test_numa_node(tmp_path: Path, text: str, node: int | None) -> None:
    add(tmp_path, attributes={"numa_node": text})
    assert Sysfs(tmp_path).functions()[0].numa_node == node


@pytest.mark.parametrize(
    ("above", "root", "bridges"),
    [
        ("pci0000:40", "pci0000:40", ()),
        (
            "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0",
            "pci0000:00",
            ("10000:00:02.0",),
        ),
        ("platform/pcie-soc", None, ()),
    ],
    ids=["below the root", "a tree below a function", "no PCI root"],
)
def test_ancestors(tmp_path: Path, above: str, root: str | None, bridges: tuple[str, ...]) -> None:
    # The host root's own path must not be taken for a part of the tree.
    host = tmp_path / "pci-machines" / "pci0000-00"
    add(host, above=above)
    (found,) = Sysfs(host).functions()
    assert (found.root, found.bridges) == (root, bridges)


def test_functions_come_by_address(tmp_path: Path) -> None:
    for name in ("0001:01:00.0", "0000:41:00.0", "10000:01:00.0"):
        add(tmp_path, name)
    found = [str(function.address) for function in Sysfs(tmp_path).functions()]
    assert found == ["0000:41:00.0", "0001:01:00.0", "10000:01:00.0"]


def test_what_has_no_address_is_no_function(tmp_path: Path) -> None:
    add(tmp_path, "usb1")
    assert Sysfs(tmp_path).functions() == ()


def test_a_card_that_goes_during_the_walk_costs_no_other(tmp_path: Path) -> None:
    add(tmp_path, "0000:41:00.0")
    gone = add(tmp_path)
    shutil.rmtree(gone)
    assert [str(f.address) for f in Sysfs(tmp_path).functions()] == ["0000:41:00.0"]


def test_a_card_that_is_gone_has_no_minor(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match=r"card 0000:0d:00\.0 is gone from the PCI bus"):
        Sysfs(tmp_path).minor(ADDRESS)


def test_a_bus_that_cannot_be_read_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match=r"devices cannot be used: No such file.*--host-root"):
        Sysfs(tmp_path).functions()


@pytest.mark.parametrize(
    ("content", "version"),
    [(b"1.5.20260710\n", "1.5.20260710"), (b"\n", None), (None, None), (b"1.\xff\n", "1.\ufffd")],
    ids=["told", "empty", "missing", "not text"],
)
def test_driver_version(tmp_path: Path, content: bytes | None, version: str | None) -> None:
    if content is not None:
        module = tmp_path / "sys/module/enflame"
        module.mkdir(parents=True)
        (module / "version").write_bytes(content)
    assert Sysfs(tmp_path).driver_version() == version


def test_nodes_are_those_of_the_card_alone(tmp_path: Path) -> None:
    dev = tmp_path / "dev"
    dev.mkdir()
    names = ("gcu1", "gcu1vid0", "gcu1vid1", "gcu1vid10", "gcuctl")
    for name in (*names, "gcu11", "gcu11vid0", "gcu0"):
        (dev / name).touch()
    nodes = Sysfs(tmp_path).nodes(1)
    assert nodes[0].path == "/dev/gcu1"
    assert {node.path for node in nodes} == {f"/dev/{name}" for name in names}
    assert nodes[0].host_path == str(dev / "gcu1")


def test_a_card_without_its_node_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    with pytest.raises(HardwareError, match=r"device node .*/dev/gcu1 does not exist; mount"):
        Sysfs(tmp_path).nodes(1)


@pytest.mark.parametrize(
    "read",
    [Sysfs.functions, lambda sysfs: sysfs.minor(ADDRESS), lambda sysfs: sysfs.nodes(3)],
    ids=["functions", "minor", "nodes"],
)
def test_what_vanishes_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Sysfs], object]
) -> None:
    add(tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/gcu3").touch()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(HardwareError, match="cannot be used: No such device"):
        read(Sysfs(tmp_path))
