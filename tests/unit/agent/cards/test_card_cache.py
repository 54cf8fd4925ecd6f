"""The cards as last seen: what a look keeps, when the next one comes, and what people are told."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.model.card import Problem, Readings
from dra_driver.model.errors import HardwareError
from dra_driver.model.names import TAINT_UNHEALTHY
from tests.unit.agent.cards.watched import FIRST, SECOND, Watched
from tests.unit.hardware.doctored import Edit


def test_nothing_is_known_before_the_first_look(watched: Watched) -> None:
    assert watched.cards.latest is None
    assert watched.cards.problem == "the hardware has not been read yet"
    with pytest.raises(HardwareError, match=r"no usable card 0000:0d:00.0: the hardware has not"):
        watched.cards.card(FIRST)


def test_a_look_finds_the_cards_and_wakes_once(watched: Watched) -> None:
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": [], "0000:0e:00.0": []}
    assert watched.cards.problem is None
    watched.cards.refresh()
    assert watched.changes == 1
    assert watched.recorder.lines == []


def test_an_idle_machine_is_looked_at_at_the_interval(watched: Watched) -> None:
    watched.cards.refresh()
    assert watched.looks_in(55) == 0
    assert watched.looks_in(5) == 1
    assert watched.looks_in(600) == 10


def test_a_change_of_the_bus_is_seen_at_the_next_tick(watched: Watched) -> None:
    watched.cards.refresh()
    watched.machine.lose_card(str(SECOND))
    assert watched.looks_in(5) == 1
    assert watched.looks_in(55) == 0


def test_a_lost_card_stays_until_it_is_back(watched: Watched) -> None:
    watched.cards.refresh()
    watched.machine.lose_card(str(SECOND))
    watched.cards.refresh()
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": [], "0000:0e:00.0": ["lost"]}
    with pytest.raises(HardwareError, match="gone from the PCI bus"):
        watched.cards.card(SECOND)
    watched.machine.restore_card(str(SECOND), index=7, minor=9)
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": [], "0000:0e:00.0": []}
    assert watched.cards.card(SECOND).minor == 9
    assert watched.changes == 3
    assert watched.recorder.lines == [
        "GcuCardLost card 0000:0e:00.0: gone from the PCI bus",
        "GcuCardBack card 0000:0e:00.0 is back",
    ]


def test_what_a_card_measures_is_new_at_each_look_and_is_no_change(watched: Watched) -> None:
    watched.cards.refresh()
    watched.machine.set_card(str(SECOND), temperature=91, powerWatts=None)
    watched.cards.refresh()
    _, second = (watched.cards.latest or {}).values()
    assert (second.readings, watched.changes) == (Readings(91.0, None, 0), 1)
    watched.machine.lose_card(str(SECOND))
    watched.cards.refresh()
    _, second = (watched.cards.latest or {}).values()
    assert second.readings == Readings()


def test_a_lost_card_keeps_its_other_problems(watched: Watched) -> None:
    watched.machine.set_card(str(SECOND), health=False)
    watched.cards.refresh()
    watched.machine.lose_card(str(SECOND))
    watched.cards.refresh()
    assert watched.problems()["0000:0e:00.0"] == ["health", "lost"]


def test_a_card_whose_minor_moved_is_told_with_the_new_one(watched: Watched) -> None:
    """Without a look: the kernel module may be loaded anew at any time."""
    watched.cards.refresh()
    watched.machine.set_card(str(FIRST), minor=5)
    assert watched.cards.card(FIRST).minor == 5


@pytest.mark.parametrize(
    ("looks", "is_ill", "changes"),
    [
        pytest.param(2, False, [1, 1], id="a tool may fail once"),
        pytest.param(4, True, [2, 3], id="all cards are ill when looks fail for a while"),
    ],
)
@pytest.mark.parametrize(
    ("fault", "told"), [("efsmi-exit", "injected fault efsmi-exit"), ("efsmi-garbage", "efsmi")]
)
def test_failed_looks_keep_what_was_seen(
    watched: Watched, *, fault: str, told: str, looks: int, is_ill: bool, changes: list[int]
) -> None:
    watched.cards.refresh()
    seen = watched.cards.latest
    watched.machine.set_fault(fault)
    for _ in range(looks):
        watched.cards.refresh()
    problem, woken = str(watched.cards.problem), [watched.changes]
    assert told in problem
    ill = Problem(TAINT_UNHEALTHY, "efsmi", problem) if is_ill else None
    assert (watched.cards.failing, watched.cards.latest) == (ill, seen)
    assert watched.cards.card(FIRST).minor == 0
    watched.machine.clear_faults()
    watched.cards.refresh()
    assert (watched.cards.problem, watched.cards.failing) == (None, None)
    assert [*woken, watched.changes] == changes
    assert watched.recorder.lines == []


def test_a_driver_that_is_loaded_late(watched: Watched) -> None:
    watched.machine.set_machine(driverLoaded=False)
    watched.cards.refresh()
    assert watched.cards.latest is None
    assert "kernel driver is not loaded" in str(watched.cards.problem)
    assert watched.changes == 0
    watched.machine.set_machine(driverLoaded=True)
    watched.now += 5
    watched.cards.tick()
    assert len(watched.problems()) == 2


def test_an_unreadable_bus(watched: Watched) -> None:
    (watched.machine.root / "sys").rename(watched.machine.root / "away")
    watched.cards.refresh()
    assert "cannot be used: No such file or directory" in str(watched.cards.problem)
    assert watched.cards.latest is None
    (watched.machine.root / "away").rename(watched.machine.root / "sys")
    watched.now += 5
    watched.cards.tick()
    assert watched.cards.problem is None


def test_a_tool_that_fails_is_asked_soon_again_and_then_less_and_less(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.machine.set_fault("efsmi-exit")
    with caplog.at_level(logging.WARNING, logger="dra_driver.agent"):
        watched.cards.refresh()
        assert watched.looks_in(5) == 1
        # The delays, doubling up to a minute, are shortened by up to half at random.
        assert 2 <= watched.looks_in(55) <= 4
        assert 9 <= watched.looks_in(600) <= 21
    assert len(caplog.records) == 1
    watched.machine.clear_faults()
    watched.looks_in(60)
    assert watched.cards.problem is None
    assert watched.looks_in(600) == 10


def test_a_card_that_cannot_be_published_is_told_once(watched: Watched) -> None:
    watched.machine.set_card(str(SECOND), virtualization="SRIOV")
    watched.cards.refresh()
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": []}
    [line] = watched.recorder.lines
    assert line.startswith("GcuCardUnusable card 0000:0e:00.0 is not published: card")
    assert "SR-IOV" in line
    with pytest.raises(HardwareError, match=r"no usable card 0000:0e:00.0: .*SR-IOV"):
        watched.cards.card(SECOND)


@pytest.mark.parametrize(
    ("call", "edit"),
    [
        ("-q", lambda text: text[: text.index("DEV ID 1") + 40]),
        ("-q", lambda text: text[: text.index("DEV ID 1")]),
        ("", lambda text: text[: text.index("00:0e:00.0")]),
        ("", lambda text: text.replace("00:0e:00.0", "00:1e:00.0")),
    ],
    ids=["cut in the card", "cut before the card", "half a summary", "index moved"],
)
def test_a_card_of_which_efsmi_prints_half_is_not_lost(
    tmp_path: Path, call: str, edit: Edit
) -> None:
    """Pods must leave lost cards where `evictOn` says so, and this card is on the bus."""
    watched = Watched(tmp_path / "machine", efsmi={"json": False, "keys": "old"})
    watched.cards.refresh()
    watched.edits[call] = edit
    watched.cards.refresh()
    assert watched.problems()["0000:0e:00.0"] == ["efsmi"]
    watched.edits.clear()
    watched.cards.refresh()
    assert watched.problems()["0000:0e:00.0"] == []
    assert [line.split()[0] for line in watched.recorder.lines][-1] == "GcuCardHealthy"
    assert not [line for line in watched.recorder.lines if line.startswith("GcuCardLost")]


def test_a_published_card_that_becomes_unusable_is_lost_with_that_reason(watched: Watched) -> None:
    watched.cards.refresh()
    watched.machine.set_card(str(SECOND), virtualization="SRIOV")
    watched.cards.refresh()
    assert watched.problems()["0000:0e:00.0"] == ["lost"]
    [line] = watched.recorder.lines
    assert line.startswith("GcuCardLost card 0000:0e:00.0: ")
    assert "SR-IOV" in line


@pytest.fixture
def started(watched: Watched) -> Iterator[Watched]:
    watched.cards.start()
    yield watched
    watched.cards.stop(5)


def test_when_started_the_first_look_is_over(started: Watched) -> None:
    assert len(started.cards.latest or ()) == 2
    assert started.cards.is_alive()
    started.cards.stop(5)
    assert not started.cards.is_alive()
