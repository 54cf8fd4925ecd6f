"""A card that has fewer device nodes than cards of its kind have, or had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra_driver.hardware.known_nodes import FILE, KnownNodes
from dra_driver.model.card import Card
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.hardware.doctored import reader, three

CONTROL = "/dev/gcuctl"


def without(machine: SimulatedMachine, *paths: str) -> SimulatedMachine:
    for path in paths:
        (machine.root / path.lstrip("/")).unlink()
    return machine


def missing(cards: Sequence[Card]) -> list[tuple[str, ...]]:
    return [card.missing_nodes for card in cards]


def test_a_card_of_which_nothing_more_is_known_lacks_nothing(tmp_path: Path) -> None:
    machine = without(three(tmp_path), CONTROL)
    assert missing(reader(machine).inventory().cards) == [()] * 3


@pytest.mark.parametrize("path", [CONTROL, "/dev/gcu1vid1"])
def test_what_the_card_had_before_is_missing(tmp_path: Path, path: str) -> None:
    machine = three(tmp_path, {"videoNodes": 2})
    seen = reader(machine)
    card = seen.inventory().cards[1]
    assert card.missing_nodes == ()
    without(machine, path)
    assert seen.card(card).missing_nodes == (path,)


def test_what_its_neighbours_have_is_missing(tmp_path: Path) -> None:
    machine = without(three(tmp_path, {"videoNodes": 2}), "/dev/gcu1vid0")
    cards = reader(machine).inventory().cards
    assert missing(cards) == [(), ("/dev/gcu1vid0",), ()]


def test_what_cards_had_before_a_boot_is_missing(tmp_path: Path) -> None:
    """Under their minors of now."""
    machine = three(tmp_path, {"videoNodes": 1})
    reader(machine).inventory()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700, "it is for the agent alone"
    machine.reboot([card.bdf for card in machine.state().cards][::-1])
    without(machine, CONTROL, *(f"/dev/gcu{minor}vid0" for minor in range(3)))
    cards = reader(machine).inventory().cards
    assert missing(cards) == [(CONTROL, f"/dev/gcu{minor}vid0") for minor in (2, 1, 0)]


@pytest.mark.parametrize("other", [{"model": "T20"}, {"driver_version": "2.0"}])
def test_another_kind_of_card_may_have_others(tmp_path: Path, other: dict[str, Any]) -> None:
    known = KnownNodes(tmp_path)
    (card, *_) = reader(three(tmp_path, {"videoNodes": 2})).inventory().cards
    known.learn([card])
    assert known.missing(replace(card, nodes=card.nodes[:1])) != ()
    assert known.missing(replace(card, nodes=card.nodes[:1], **other)) == ()


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"S60": 1}', b"\xff"])
def test_a_damaged_file_is_written_anew(tmp_path: Path, content: bytes) -> None:
    machine = three(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE).write_bytes(content)
    reader(machine).inventory()
    without(machine, CONTROL)
    assert missing(reader(machine).inventory().cards) == [(CONTROL,)] * 3


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    machine = three(tmp_path)
    (tmp_path / "state").write_text("a file is in the way")
    seen = reader(machine)
    card = seen.inventory().cards[0]
    without(machine, CONTROL)
    assert seen.card(card).missing_nodes == (CONTROL,)
