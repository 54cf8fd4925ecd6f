"""Rows of ``efsmi -L`` in the layouts seen."""

from __future__ import annotations

import pytest

from dra_driver.hardware.efsmi.listing import parse_index
from dra_driver.model.pci import PciAddress
from tests.unit.efsmi_outputs import BANNER, INSTANCE_ROW, LIST

CARDS = {0: PciAddress(0, 0x0D, 0, 0), 1: PciAddress(0, 0x0F, 0, 0)}
ROW = LIST.splitlines()[2]


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        pytest.param(LIST, [0, 1], id="slot with a blank, and no slot"),
        pytest.param(BANNER + LIST, [0, 1], id="banner"),
        pytest.param(LIST.replace("GCU ", "DEV ", 1), [0, 1], id="older header"),
        pytest.param(LIST.replace("0000:0d", "00000000:0d"), [0, 1], id="domain of eight digits"),
        pytest.param(LIST + INSTANCE_ROW, [0, 1], id="row of an instance"),
        pytest.param(LIST.replace("0000:0d", "0000:0D"), [0, 1], id="upper case"),
        pytest.param(LIST.replace("0001\n", "0001   \n\n"), [0, 1], id="blanks"),
        pytest.param(LIST.replace("\n", "\r\n"), [0, 1], id="carriage returns"),
        pytest.param(f"{ROW}\n{ROW}", [0], id="one card twice is told as it is"),
        pytest.param(ROW.replace("0000:0d", "00:0d"), [], id="a shortened domain is no address"),
        pytest.param(ROW.rpartition("0-7,")[0], [], id="the row was cut off after the address"),
        pytest.param(ROW.replace(" 0 ", " 99999 ", 1), [], id="not an index"),
        pytest.param("No devices were found\n", [], id="words"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_rows(text: str, listed: list[int]) -> None:
    assert {at: parse_index(text, card) for at, card in CARDS.items()} == {
        at: at if at in listed else None for at in CARDS
    }
