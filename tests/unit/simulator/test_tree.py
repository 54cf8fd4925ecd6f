"""The file tree as a function of the state."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.simulator.description.resolve import first_state
from dra_driver.simulator.description.spec import MachineSpec
from dra_driver.simulator.tree import File, Link, Node, TreeDeviceNode, tree

CARD = {
    "bdf": "0000:0d:00.0",
    "model": "S60",
    "minor": 3,
    "pciPath": "pci0000:00/0000:00:01.0/0000:0b:00.0",
    "numaNode": 1,
    "cpuAffinity": "0-7,32-39",
}
FOLDER = "sys/devices/pci0000:00/0000:00:01.0/0000:0b:00.0/0000:0d:00.0"


def nodes(*cards: dict[str, Any], **keys: Any) -> dict[str, Node]:
    return tree(first_state(MachineSpec.model_validate({"cards": cards, **keys})))


@pytest.mark.parametrize(
    ("path", "node"),
    [
        (f"{FOLDER}/vendor", File("0x1e36\n")),
        (f"{FOLDER}/device", File("0xc035\n")),
        (f"{FOLDER}/class", File("0x120000\n")),
        (f"{FOLDER}/numa_node", File("1\n")),
        (f"{FOLDER}/local_cpulist", File("0-7,32-39\n")),
        (f"{FOLDER}/enflame/gcu3/dev", File("240:3\n")),
        (
            "sys/bus/pci/devices/0000:0d:00.0",
            Link("../../../devices/pci0000:00/0000:00:01.0/0000:0b:00.0/0000:0d:00.0"),
        ),
        (
            "sys/bus/pci/devices/0000:0b:00.0",
            Link("../../../devices/pci0000:00/0000:00:01.0/0000:0b:00.0"),
        ),
        ("sys/devices/pci0000:00/0000:00:01.0/class", File("0x060400\n")),
        ("sys/module/enflame/version", File("1.5.20260710\n")),
        ("dev/gcu3", TreeDeviceNode(240, 3, char=False)),
        ("dev/gcuctl", TreeDeviceNode(240, 255, char=False)),
    ],
)
def test_nodes(path: str, node: Node) -> None:
    assert nodes(CARD)[path] == node


def test_variants() -> None:
    found = nodes({**CARD, "videoNodes": 3}, driverDirectory="zixiao", charMajor=250)

    assert found[f"{FOLDER}/zixiao/gcu3/dev"] == File("250:3\n")
    assert {path for path in found if "vid" in path} == {f"dev/gcu3vid{n}" for n in range(3)}


def test_no_two_device_nodes_have_one_number() -> None:
    cards = [
        {"bdf": f"0000:{at:02x}:00.0", "model": "S60", "videoNodes": 16} for at in range(1, 65)
    ]

    devices = [node for node in nodes(*cards).values() if isinstance(node, TreeDeviceNode)]

    assert len({(node.major, node.minor) for node in devices}) == len(devices) == 64 * 17 + 1
