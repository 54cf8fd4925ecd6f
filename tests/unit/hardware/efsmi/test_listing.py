"""Rows of ``efsmi -L`` in the layouts seen."""

from __future__ import annotations

import pytest

from dra_driver.hardware.efsmi.listing import ListedCard, parse_list
from dra_driver.model.pci import PciAddress
from tests.unit.efsmi_outputs import BANNER, INSTANCE_ROW, LIST

FIRST = ListedCard(0, PciAddress(0, 0x0D, 0, 0), "TPUA10000001")
SECOND = ListedCard(1, PciAddress(0, 0x0F, 0, 0), "TPUA10000002")
ROW = LIST.splitlines()[2]


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        pytest.param(LIST, (FIRST, SECOND), id="slot with a blank, and no slot"),
        pytest.param(BANNER + LIST, (FIRST, SECOND), id="banner"),
        pytest.param(LIST.replace("GCU ", "DEV ", 1), (FIRST, SECOND), id="older header"),
        pytest.param(
            LIST.replace("0000:0d", "00000000:0d"), (FIRST, SECOND), id="domain of eight digits"
        ),
        pytest.param(LIST + INSTANCE_ROW, (FIRST, SECOND), id="row of an instance"),
        pytest.param(LIST.replace("0000:0d", "0000:0D"), (FIRST, SECOND), id="upper case"),
        pytest.param(LIST.replace("0001\n", "0001   \n\n"), (FIRST, SECOND), id="blanks"),
        pytest.param(LIST.replace("\n", "\r\n"), (FIRST, SECOND), id="carriage returns"),
        pytest.param(f"{ROW}\n{ROW}", (FIRST, FIRST), id="one card twice is told as it is"),
        pytest.param(ROW.replace("0000:0d", "00:0d"), (), id="a shortened domain is no address"),
        pytest.param(ROW.rpartition("0-7,")[0], (), id="the row was cut off after the address"),
        pytest.param(ROW.replace(" 0 ", " 99999 ", 1), (), id="not an index"),
        pytest.param("No devices were found\n", (), id="words"),
        pytest.param("", (), id="nothing"),
    ],
)
def test_rows(text: str, cards: tuple[ListedCard, ...]) -> None:
    assert parse_list(text) == cards
