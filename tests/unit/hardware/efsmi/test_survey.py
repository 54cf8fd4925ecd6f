"""A card for which efsmi does not answer: told as such, at no other card's cost."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from dra_driver.hardware.efsmi.runner import EfsmiFailed, EfsmiHung
from dra_driver.hardware.machine import HardwareScan
from dra_driver.model.errors import HardwareError
from tests.unit.hardware.doctored import (
    OLD_TOOL,
    DoctoredEfsmi,
    Edit,
    addresses,
    reader,
    reasons,
    silent,
    three,
    unbind,
)
from tests.unit.hardware.efsmi.test_runner import grown_by, tool

FIRST, SECOND, THIRD = (f"0000:{bus}:00.0" for bus in ("0d", "0e", "0f"))
_FOR_EVER = 60.0
OF_ALL = ("-q --json-format", "-q", "-L", "")


def hung(_: str) -> str:
    raise EfsmiHung("`efsmi` did not end within 1 s")


def failed(_: str) -> str:
    raise EfsmiFailed("`efsmi` was killed by signal 11: no output")


def of_card(index: int, edit: Edit) -> dict[str, Edit]:
    """What happens to each call that asks that card, alone or with the others."""
    alone = (f"-i {index} {call}" for call in ("-q --json-format", "-q", "-L"))
    return dict.fromkeys((*OF_ALL, *alone), edit)


class Looked:
    """Three cards, of which the first has index 2; `edits` can change between two looks."""

    def __init__(self, root: Path, **keys: Any) -> None:
        self.machine = three(root, **keys)
        self.edits: dict[str, Edit] = {}
        self.efsmi = DoctoredEfsmi(self.machine, self.edits)
        self.view = reader(self.machine, self.efsmi)

    def inventory(self) -> HardwareScan:
        self.efsmi.calls.clear()
        return self.view.inventory()


@pytest.mark.parametrize("edit", [hung, failed], ids=["hangs", "ends the tool"])
@pytest.mark.parametrize("tool", [{}, {"json": False}], ids=["JSON", "text"])
def test_a_card_that_does_not_answer_costs_no_other(
    tmp_path: Path, edit: Edit, tool: dict[str, Any]
) -> None:
    looked = Looked(tmp_path, efsmi=tool)
    before = looked.inventory().cards
    looked.edits |= of_card(2, edit)
    found = looked.inventory()
    assert (addresses(found), reasons(found)) == ([SECOND, THIRD], {})
    [(address, reason)] = silent(found).items()
    assert address == FIRST
    assert reason.startswith("`efsmi`")
    # The modes stand in the summary, which is of all cards.
    assert {card.virtualization for card in found.cards} == {None}
    looked.edits.clear()
    looked.inventory()
    assert looked.inventory().cards == before


def test_old_tools_that_print_no_address_are_asked_card_by_card(tmp_path: Path) -> None:
    looked = Looked(tmp_path, efsmi=OLD_TOOL)
    looked.edits |= of_card(0, hung)

    def without_address(text: str) -> str:
        return text.replace("PCIe Info", "Something Else")

    looked.edits |= {f"-i {index} -q": without_address for index in (1, 2)}
    found = looked.inventory()
    assert addresses(found) == [FIRST, SECOND]
    assert [*silent(found)] == [THIRD]


def test_an_index_that_moved_is_found(tmp_path: Path) -> None:
    """A gap among the indexes, as a card that was lost leaves it."""
    looked = Looked(tmp_path)
    looked.inventory()
    looked.machine.lose_card(SECOND)
    looked.edits |= of_card(0, hung)
    found = looked.inventory()
    assert addresses(found) == [FIRST]
    assert [*silent(found)] == [THIRD]


def test_a_gap_among_the_indexes_is_no_failure(tmp_path: Path) -> None:
    """When the last card that did not answer is gone from the bus."""
    looked = Looked(tmp_path)
    looked.inventory()
    looked.edits |= of_card(1, hung)
    looked.inventory()
    looked.machine.lose_card(SECOND)
    looked.edits.clear()
    assert addresses(looked.inventory()) == [FIRST, THIRD]


def test_answers_that_are_no_cards_of_the_node(tmp_path: Path) -> None:
    looked = Looked(tmp_path)
    looked.edits |= dict.fromkeys(OF_ALL, failed)
    looked.edits |= {
        f"-i {index} -q --json-format": lambda text: text.replace('"0000"', '"0001"')
        for index in range(3)
    }
    with pytest.raises(HardwareError, match="was killed by signal 11"):
        looked.inventory()


@pytest.mark.parametrize(
    ("edit", "known", "hangs"),
    [(hung, False, [FIRST]), (hung, True, [FIRST]), (failed, True, [])],
    ids=["at the first look", "later", "a tool that ends"],
)
def test_which_cards_took_a_whole_limit(
    tmp_path: Path, edit: Edit, known: bool, hangs: list[str]
) -> None:
    """Before an index was seen any error may be that of a card that is missing."""
    looked = Looked(tmp_path)
    if known:
        looked.inventory()
    looked.edits |= of_card(2, edit)
    found = looked.inventory()
    assert [*silent(found)] == [FIRST]
    assert [*silent(found, kind=EfsmiHung)] == hangs


def test_each_card_is_asked_while_the_call_of_all_still_hangs(tmp_path: Path) -> None:
    """So a look takes one limit and a part of one, and not two."""
    looked = Looked(tmp_path)
    looked.efsmi.timeout = 0.0  # no patience
    answered = threading.Barrier(3 + 1)

    def hangs_until_each_was_asked(_: str) -> str:
        answered.wait(_FOR_EVER)
        return hung("")

    def asked(text: str) -> str:
        answered.wait(_FOR_EVER)
        return text

    def asked_in_vain(_: str) -> str:
        return hung(asked(""))

    looked.edits |= {
        "-q --json-format": hangs_until_each_was_asked,
        "-i 0 -q --json-format": asked,
        "-i 1 -q --json-format": asked,
        "-i 2 -q --json-format": asked_in_vain,
    }
    looked.view = reader(looked.machine, looked.efsmi)
    found = looked.inventory()
    assert (addresses(found), [*silent(found, kind=EfsmiHung)]) == ([SECOND, THIRD], [FIRST])
    assert len(looked.efsmi.calls) == 4, "each was asked once"


def test_no_card_is_asked_where_all_answer_at_once(tmp_path: Path) -> None:
    looked = Looked(tmp_path)
    looked.inventory()
    assert looked.efsmi.calls == ["-q --json-format", ""]
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(each.finished.is_set() for each in timers), "they will be asked"


@pytest.mark.parametrize("edit", [hung, failed])
def test_when_no_card_answers_it_is_the_tool(tmp_path: Path, edit: Edit) -> None:
    looked = Looked(tmp_path)
    for index in range(3):
        looked.edits |= of_card(index, edit)
    with pytest.raises(HardwareError, match="`efsmi`"):
        looked.inventory()


def test_when_each_card_answers_it_is_the_tool_as_well(tmp_path: Path) -> None:
    looked = Looked(tmp_path)
    looked.edits[""] = hung
    with pytest.raises(EfsmiHung):
        looked.inventory()
    looked.edits.clear()
    assert len(looked.inventory().cards) == 3


def test_a_card_that_the_kernel_driver_lost_is_not_silent(tmp_path: Path) -> None:
    looked = Looked(tmp_path)
    looked.edits |= of_card(2, hung)
    unbind(looked.machine, FIRST)
    found = looked.inventory()
    assert not silent(found)
    assert "is not bound to card" in reasons(found)[FIRST]


def test_what_each_card_prints_is_parsed_one_after_the_other(tmp_path: Path) -> None:
    """Parsing takes many times the memory of the text."""
    keys = "".join(f" {number:04x}:\n" for number in range(50_000))
    (tmp_path / "card").write_text(f"DEV ID 0\n a\n{keys}")
    efsmi = tool(tmp_path, f'[ "$1" = -i ] && cat {tmp_path}/card')
    cards = "[PciAddress(0, bus, 0, 0) for bus in range(16)]"
    grown = grown_by(efsmi, f"Surveyor(efsmi, patience=60).survey({cards})")
    assert grown < 64  # MiB; each card's text takes some 15
