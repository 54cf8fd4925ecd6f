"""The summary's cells in the layouts seen; the second card of each is in DRS mode."""

from __future__ import annotations

import pytest

from dra_driver.hardware.efsmi.summary import SummaryRow, parse_summary
from dra_driver.model.card import Virtualization
from dra_driver.model.errors import HardwareError
from tests.unit.efsmi_outputs import BANNER, INSTANCES, NEW_SUMMARY, OLD_SUMMARY, SUMMARY

FIRST = SummaryRow(0, "0d:00.0", Virtualization.DISABLED, "Disable")
SECOND = SummaryRow(1, "0f:00.0", Virtualization.DRS, "DRS")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SUMMARY, id="version 1.4"),
        pytest.param(OLD_SUMMARY, id="version 1.2"),
        pytest.param(NEW_SUMMARY, id="version 1.7"),
        pytest.param(BANNER + SUMMARY + INSTANCES, id="banner and table of instances"),
        pytest.param(SUMMARY.replace("118W / 300W", " N/A / 300W"), id="no power"),
        pytest.param(SUMMARY.replace("118W / 300W", "-          "), id="no power at all"),
        pytest.param(SUMMARY.replace("71℃    Sleep", "-      Sleep"), id="no temperature"),
        pytest.param(SUMMARY.replace("71℃ ", "71 C"), id="temperature in letters"),
        pytest.param(SUMMARY.replace("71℃ ", "71\ufffd "), id="temperature not decoded"),
        pytest.param(SUMMARY.replace("00:0d", "00000000:0D"), id="whole domain, upper case"),
        pytest.param(SUMMARY.replace("DRS     |", "DRS      |"), id="wider than its column"),
        pytest.param(SUMMARY.replace("\n", "   \r\n"), id="trailing blanks"),
        pytest.param(
            SUMMARY.replace("| DUsed       SN            |", "| DUsed |").replace(
                "Mem     GCU Virt", "GCU Virt"
            ),
            id="other columns beside it",
        ),
    ],
)
def test_layouts_that_say_the_same(text: str) -> None:
    assert parse_summary(text) == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("SRIOV", SummaryRow(0, "0d:00.0", Virtualization.SRIOV, "SRIOV")),
        ("vGCU", SummaryRow(0, "0d:00.0", None, "vGCU")),
        ("", SummaryRow(0, "0d:00.0", None, "42976MiB")),
    ],
    ids=["known", "unknown word", "no word"],
)
def test_a_mode_of_one_card(mode: str, expected: SummaryRow) -> None:
    text = SUMMARY.replace("Disable |", f"{mode:7} |")
    assert parse_summary(text) == (expected, SECOND)


def test_a_cell_without_its_second_line_has_no_mode() -> None:
    cut = SUMMARY[: SUMMARY.index("| 74℃")]
    assert parse_summary(cut) == (FIRST, SummaryRow(1, "0f:00.0", None, ""))


def test_the_column_is_found_by_its_header() -> None:
    def swapped(line: str) -> str:
        cells = line.split("|")
        return "|".join([*cells[:2], cells[3], cells[2], *cells[4:]]) if len(cells) > 4 else line

    text = "\n".join(swapped(line) for line in SUMMARY.splitlines())
    assert parse_summary(text) == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"no column GCU Virt \(it printed: \)"),
        ("driver version mismatch\n", "no column .*printed: driver version mismatch"),
        (SUMMARY.replace("GCU Virt", "        "), "no column GCU Virt"),
        (SUMMARY[: SUMMARY.index("| 0 ")], r"shows no card \(it printed: \|-----"),
    ],
    ids=["nothing", "error text with success", "another tool", "no cell"],
)
def test_what_cannot_tell_the_modes_is_an_error(text: str, said: str) -> None:
    with pytest.raises(HardwareError, match=said):
        parse_summary(text)
