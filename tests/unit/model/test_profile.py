from __future__ import annotations

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.model.profile import Profile, ProfileTable, profile_size


def row(name: str, number: int = 0, count: int = 1, memory: int = 6860, sips: int = 4) -> Profile:
    return Profile(name, number, count, memory, sips)


ECC = ProfileTable.of(
    [
        row("6g.40gb", 2, 1, 41160, 24),
        row("1g.6gb", 0, 6, 6860, 4),
        row("3g.20gb", 1, 2, 20580, 12),
    ]
)


def test_a_table_is_ascending_whatever_efsmi_prints_first() -> None:
    assert [profile.name for profile in ECC] == ["1g.6gb", "3g.20gb", "6g.40gb"]
    assert (ECC.total, ECC.sips) == (6, 24)
    assert ECC.text == "1g.6gb,3g.20gb,6g.40gb"
    assert ECC.for_size(3).id == 1


def test_a_card_without_a_profile_of_its_full_size() -> None:
    table = ProfileTable.of([row("1g.11gb", 0, 4, 11520, 6), row("2g.22gb", 1, 1, 23040, 12)])
    assert (table.total, table.sips) == (4, 24)


def test_a_size_without_a_profile_names_those_that_exist() -> None:
    with pytest.raises(InvalidValue, match=r"1g\.6gb,3g\.20gb,6g\.40gb"):
        ECC.for_size(2)


def test_the_attribute_is_cut_at_the_last_whole_name() -> None:
    table = ProfileTable.of(row(f"{n}g.{n}000gb", n) for n in range(1, 11))
    assert table.text == ",".join(f"{n}g.{n}000gb" for n in range(1, 7))
    assert len(f"{table.text},7g.7000gb") > 64


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="no profiles"),
        pytest.param([row("1g.6gb", 0), row("1g.7gb", 1)], id="one size twice"),
        pytest.param([row("1g.6gb", 0), row("2g.7gb", 0)], id="one id twice"),
        pytest.param([row("1g.6gb", count=0)], id="a card holds none"),
        pytest.param([row("1g.6gb", memory=0)], id="without memory"),
        pytest.param([row("1g.6gb", 10**19)], id="an id that is none"),
        pytest.param([row("1g.6gb", count=10**19)], id="a card holds more than the API can count"),
        pytest.param([row("1g.6gb", sips=10**19)], id="more SIPs than the API can count"),
    ],
)
def test_a_table_that_means_nothing_is_refused(rows: list[Profile]) -> None:
    with pytest.raises(InvalidValue):
        ProfileTable.of(rows)


@pytest.mark.parametrize(
    "name", ["3g.20gb ", "g.20gb", "0g.2gb", "3g20gb", "3G.20GB", "", "１g.6gb"]
)
def test_names_of_another_form_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue):
        profile_size(name)
    assert profile_size("12g.100gb") == 12
