from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card, Ecc
from dra_driver.model.effects import Effects, Point
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile, ProfileTable

CARD = Card(
    address=PciAddress.parse("0000:0d:00.0"),
    index=0,
    minor=0,
    model="S60",
    uuid="TPUA10000001",
    memory_mib=42976,
    driver_version="1.5",
    ecc=Ecc(current=True, pending=True),
    virtualization=None,
    numa_node=None,
    pcie_root=None,
    pcie_bridges=(),
    nodes=(),
)
NO_ECC = replace(CARD, ecc=Ecc(current=False, pending=False), memory_mib=49120)
TABLE = ProfileTable.of([Profile("1g.6gb", 0, 6, 6860, 4), Profile("3g.20gb", 1, 2, 20580, 12)])
OTHER = ProfileTable.of([Profile("1g.7gb", 0, 6, 7948, 4)])


def test_what_was_learnt_is_known_after_a_restart(tmp_path: Path) -> None:
    tables = ProfileTables(tmp_path / "state")
    assert tables.table(CARD) is None
    tables.learn(CARD, TABLE)
    tables.learn(NO_ECC, OTHER)
    again = ProfileTables(tmp_path / "state")
    assert (again.table(CARD), again.table(NO_ECC)) == (TABLE, OTHER)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(CARD, model="S60G"), id="another model"),
        pytest.param(replace(CARD, ecc=None), id="no ECC"),
        pytest.param(replace(CARD, memory_mib=49120), id="other memory"),
        pytest.param(replace(CARD, driver_version="1.6"), id="another driver"),
    ],
)
def test_another_kind_of_card_has_another_table(tmp_path: Path, other: Card) -> None:
    tables = ProfileTables(tmp_path)
    tables.learn(CARD, TABLE)
    assert tables.table(other) is None
    assert tables.table(replace(CARD, address=PciAddress.parse("0000:0e:00.0"))) == TABLE


def test_two_agents_lose_nothing_of_each_other(tmp_path: Path) -> None:
    one, two = ProfileTables(tmp_path), ProfileTables(tmp_path)
    assert two.table(CARD) is None
    one.learn(CARD, TABLE)
    two.learn(NO_ECC, OTHER)
    assert ProfileTables(tmp_path).table(CARD) == TABLE


def contents() -> list[object]:
    good = {"format": "gcu-dra-profiles", "version": 2}
    row = {"name": "1g.6gb", "id": 0, "count": 6, "memory_mib": 6860, "sips": 4}
    unkeyed = {"model": "S60", "ecc": True, "memory_mib": 42976}
    variant = {**unkeyed, "driver": "1.5"}
    table = {"variant": variant, "profiles": [row]}
    return [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\x00{", id="garbage"),
        pytest.param(b"[]", id="another document"),
        pytest.param(json.dumps({**good, "version": 3, "tables": []}).encode(), id="newer"),
        pytest.param(
            json.dumps(
                {**good, "tables": [{**table, "variant": {**variant, "ecc": "on"}}]}
            ).encode(),
            id="ecc",
        ),
        pytest.param(
            json.dumps({**good, "tables": [{**table, "variant": unkeyed}]}).encode(), id="no driver"
        ),
        pytest.param(
            json.dumps({**good, "tables": [{**table, "profiles": []}]}).encode(), id="no profiles"
        ),
        pytest.param(
            json.dumps(
                {**good, "tables": [{**table, "profiles": [{**row, "name": "x"}]}]}
            ).encode(),
            id="no profile name",
        ),
        pytest.param(
            json.dumps(
                {**good, "tables": [{**table, "variant": {**variant, "memory_mib": 1e999}}]}
            ).encode(),
            id="a number beyond numbers",
        ),
    ]


@pytest.mark.parametrize("content", contents())
def test_a_file_that_cannot_be_read_is_written_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "profiles.json"
    path.write_bytes(content)
    tables = ProfileTables(tmp_path)
    assert tables.table(CARD) is None
    tables.learn(CARD, TABLE)
    assert ProfileTables(tmp_path).table(CARD) == TABLE


class Broken(Effects):
    def before(self, point: Point) -> None:
        if point is Point.CACHE_WRITE:
            raise OSError("disk full")


def test_a_full_disk_costs_the_file_only(tmp_path: Path) -> None:
    tables = ProfileTables(tmp_path, effects=Broken())
    tables.learn(CARD, TABLE)
    assert tables.table(CARD) == TABLE
    assert not list(tmp_path.iterdir())
