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
from tests.unit.model import cards

CARD = replace(cards.CARD, driver_version="1.5")
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


ROW = {"name": "1g.6gb", "id": 0, "count": 6, "memory_mib": 6860, "sips": 4}
UNKEYED = {"model": "S60", "ecc": True, "memory_mib": 42976}
VARIANT = {**UNKEYED, "driver": "1.5"}


def written(variant: object = VARIANT, *rows: object, version: int = 2) -> bytes:
    table = {"variant": variant, "profiles": rows}
    document = {"format": "gcu-dra-profiles", "version": version, "tables": [table]}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\x00{", id="garbage"),
        pytest.param(b"[]", id="another document"),
        pytest.param(written(VARIANT, ROW, version=3), id="newer"),
        pytest.param(written({**VARIANT, "ecc": "on"}, ROW), id="ecc"),
        pytest.param(written(UNKEYED, ROW), id="no driver"),
        pytest.param(written(VARIANT), id="no profiles"),
        pytest.param(written(VARIANT, {**ROW, "name": "x"}), id="no profile name"),
        pytest.param(written({**VARIANT, "memory_mib": 1e999}, ROW), id="beyond numbers"),
    ],
)
def test_a_file_that_cannot_be_read_is_written_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "profiles.json").write_bytes(content)
    tables = ProfileTables(tmp_path)
    assert tables.table(CARD) is None
    tables.learn(CARD, TABLE)
    assert ProfileTables(tmp_path).table(CARD) == TABLE


def test_a_file_of_this_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "profiles.json").write_bytes(written(VARIANT, ROW))
    assert ProfileTables(tmp_path).table(CARD) is not None


class Broken(Effects):
    def before(self, point: Point) -> None:
        if point is Point.CACHE_WRITE:
            raise OSError("disk full")


def test_a_full_disk_costs_the_file_only(tmp_path: Path) -> None:
    tables = ProfileTables(tmp_path, effects=Broken())
    tables.learn(CARD, TABLE)
    assert tables.table(CARD) == TABLE
    assert not list(tmp_path.iterdir())
