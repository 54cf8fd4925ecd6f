"""Cards that hang: which are unhealthy, and which are not asked again at once."""

from __future__ import annotations

from dra_driver.model.card import Virtualization
from tests.unit.agent.cards.watched import COOLDOWN, SECOND, Watched, hangs


def test_calls_for_a_card_that_hung_fail_at_once_after_the_inventory(watched: Watched) -> None:
    watched.hang_second()
    watched.cards.refresh()
    assert watched.silent() == [None, SECOND]
    watched.now += COOLDOWN
    watched.edits |= {"-i 0 -q --json-format": hangs}
    watched.cards.refresh()
    assert watched.silent() == [None], "it is the tool"
    watched.now += COOLDOWN
    watched.edits.clear()
    watched.cards.refresh()
    assert watched.silent() == []


def test_a_card_that_hangs_is_unhealthy_and_no_other(watched: Watched) -> None:
    watched.cards.refresh()
    watched.hang_second()
    watched.cards.refresh()
    assert watched.cards.problem is None
    assert watched.problems() == {"0000:0d:00.0": [], "0000:0e:00.0": ["efsmi"]}
    first, second = (watched.cards.latest or {}).values()
    assert first.virtualization is Virtualization.DISABLED, "as it was told before"
    assert second.problems[0].text == ("efsmi does not answer for it: it did not end within 20 s")
    watched.edits.clear()
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": [], "0000:0e:00.0": []}
    why = "efsmi does not answer for it: it did not end within 20 s"
    assert watched.recorder.lines == [
        f"GcuCardUnhealthy card 0000:0e:00.0: {why}",
        "GcuCardHealthy card 0000:0e:00.0 is healthy again",
    ]


def test_a_card_that_hangs_from_the_start_on_is_not_published(watched: Watched) -> None:
    watched.hang_second()
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": []}
    assert watched.recorder.lines == [
        "GcuCardUnusable card 0000:0e:00.0 is not published: it did not end within 20 s"
    ]
    assert watched.cards.unread == {SECOND}
    changes = watched.changes
    watched.edits.clear()
    watched.machine.lose_card(str(SECOND))
    watched.cards.refresh()
    assert watched.cards.unread == frozenset()
    assert watched.changes == changes + 1, "now it is lost"
    watched.machine.restore_card(str(SECOND))
    watched.cards.refresh()
    assert watched.problems() == {"0000:0d:00.0": [], "0000:0e:00.0": []}


def test_a_lost_card_that_is_back_and_hangs(watched: Watched) -> None:
    watched.cards.refresh()
    watched.machine.lose_card(str(SECOND))
    watched.cards.refresh()
    watched.machine.restore_card(str(SECOND))
    watched.hang_second()
    watched.cards.refresh()
    assert watched.problems()["0000:0e:00.0"] == ["efsmi"]
