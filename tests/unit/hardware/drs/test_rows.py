"""Rows as vendor code reads them, and what must not be taken for one."""

from __future__ import annotations

import pytest

from dra_driver.hardware.drs.rows import (
    parse_instances,
    parse_older_instances,
    parse_profiles,
    parse_summary_instances,
)
from dra_driver.model.errors import HardwareError
from dra_driver.model.instance import Instance
from dra_driver.model.profile import Profile

UUID = "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11"
LISTING = f"""\
GCU    SN                Slot           ID           Bus             CPU Affinity     UUID
--------------------------------------------------------------------------------------------------
 0     A1B2C30410001     PCIE5 (X16)    1e36:c035    0000:0d:00.0    0-7,32-39        TPUA10000001
| 0      1g.6gb     1      {UUID} |
| 0      3g.20gb    2      0b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a12 |
| 10     3g.20gb    2      1b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a12 |
"""
SUMMARY = """\
| GCU instances:                                                              |
|----------------------------------+----------------------------+-------------|
| GCU        Name           ID     | Mem (Usage/Total)          | SIP         |
+----------------------------------+----------------------------+-------------+
|  0         1g.6gb         1      |     0MiB /  6860MiB        | 4           |
|  1         6g.40gb        1      |     0MiB / 41160MiB        | 24          |
+----------------------------------+----------------------------+-------------+
"""
PROFILES = """\
| 0      1g.6gb     0      6      6860MiB     4  |
| 0      3g.20gb    1      2     20580 MiB   12  |
| 1      1g.7gb     0      6      7948MiB     4  |
"""


def test_instances_of_one_card() -> None:
    assert parse_instances(LISTING, 0) == (
        Instance(1, "1g.6gb", UUID),
        Instance(2, "3g.20gb", "0b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a12"),
    )
    assert parse_instances(LISTING, 7) == ()


def test_instances_of_an_older_tool() -> None:
    rows = "| 0  3g.20gb  1  5  3:3 |\n| 0  1g.6gb  0  2  0:1 |\n"
    assert parse_older_instances(rows, 0) == (Instance(5, "3g.20gb"), Instance(2, "1g.6gb"))


def test_instances_in_the_summary() -> None:
    assert parse_summary_instances(SUMMARY, 0) == (Instance(1, "1g.6gb"),)
    assert parse_summary_instances(SUMMARY, 1) == (Instance(1, "6g.40gb"),)


def test_profiles_of_one_card() -> None:
    table = parse_profiles(PROFILES, 0)
    assert table is not None
    assert list(table) == [
        Profile("1g.6gb", 0, 6, 6860, 4),
        Profile("3g.20gb", 1, 2, 20580, 12),
    ]
    assert parse_profiles("no such thing", 0) is None


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("| 0 1g.6gb |", id="cut off"),
        pytest.param("| 1g.6gb 0 1 x |", id="other order"),
        pytest.param("| 0 1g.6gb one x |", id="no number"),
        pytest.param("| 0 1g.6gb 1 uuid=1 |", id="no uuid"),
        pytest.param("| 0 0g.6gb 1 x |", id="size zero"),
        pytest.param(f"| {'9' * 5000} 1g.6gb 1 x |", id="an index without end"),
    ],
)
def test_a_row_that_is_not_understood_is_never_passed_over(row: str) -> None:
    with pytest.raises(HardwareError, match="unknown form"):
        parse_instances(row, 0)


def test_instances_that_one_uuid_stands_for_are_refused() -> None:
    """One of them would be destroyed in another's place, and one that is made not be seen."""
    with pytest.raises(HardwareError, match="one uuid for several DRS instances of card 0"):
        parse_instances("| 0 1g.6gb 1 NA |\n| 0 1g.6gb 2 NA |\n", 0)
    twice = "| 0 1g.6gb 1 NA |\n" * 2 + "| 1 1g.6gb 2 NA |\n"
    assert parse_instances(twice, 0) == (Instance(1, "1g.6gb", "NA"),) * 2


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param("0 1g.6gb 0 6 lots 4", id="no memory"),
        pytest.param("0 1g.6gb 0 6", id="cut off"),
        pytest.param("0 1g.6gb 0 6 6860MiB 4\n0 1g.7gb 1 6 7948MiB 4", id="one size twice"),
    ],
)
def test_profiles_that_are_not_understood_are_refused(rows: str) -> None:
    with pytest.raises(HardwareError):
        parse_profiles(rows, 0)
