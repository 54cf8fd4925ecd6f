"""Cards that somebody else divides, and cards that shall be offered as something else."""

from __future__ import annotations

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_CHANGING, TAINT_FOREIGN
from dra_driver.model.profile import profile_size
from tests.e2e.events import notes
from tests.e2e.installation import Installation
from tests.e2e.one_card import OneCard

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


def test_a_card_that_somebody_divides_is_left_alone(driver: Installation, one: OneCard) -> None:
    index = str(one.machine.card(one.card).efsmi_index)

    def efsmi(*arguments: str) -> None:
        assert one.machine.efsmi("-i", index, "--drs", *arguments).exit_code == 0

    efsmi("on")
    efsmi("--create-instance", "0")
    [theirs] = one.machine.instances(one.card)
    try:
        one.wait_until(lambda: one.tainted(TAINT_FOREIGN), "the taint")
        one.apply("drs", Mode.DRS, 1)
        one.apply("whole", Mode.WHOLE)
        for name in ("drs", "whole"):
            one.wait_for_words(name, "GcuAllocationFailed", TAINT_FOREIGN)
        one.wait_until(lambda: _told(driver, one), "an event on the Node")
        assert one.machine.instances(one.card) == (theirs,)
        one.end("whole")
    finally:
        efsmi("--destroy-instance", str(theirs.id))
        efsmi("off")
    one.wait_until(lambda: not one.tainted(TAINT_FOREIGN), "no taint")
    one.wait_for("drs")
    assert profile_size(one.profiles()[0]) == 1


def test_a_held_card_keeps_its_slices_until_the_last_claim_ends(
    driver: Installation, one: OneCard
) -> None:
    one.run("held", Mode.SHARED, 2)
    with driver.changed(cards={"sliceCount": 4}):
        one.wait_until(lambda: one.tainted(TAINT_CHANGING), "the taint on the held card")
        assert driver.slice_counts(one.node.name)[one.card] == 6
        one.wait_until(lambda: set(_others(driver, one)) == {4}, "four slices on free cards")
        one.apply("more", Mode.SHARED, 1)
        one.wait_for_words("more", "GcuAllocationFailed", TAINT_CHANGING)
        one.end("held")
        one.wait_for("more")
        assert driver.slice_counts(one.node.name)[one.card] == 4
        assert not one.tainted(TAINT_CHANGING)
        one.end("more")
    one.wait_until(
        lambda: set(driver.slice_counts(one.node.name).values()) == {6}, "six slices on all cards"
    )


def _told(driver: Installation, one: OneCard) -> bool:
    told = notes(driver, "default", "Node", "GcuCardForeign", one.node.name)
    return any(one.card in note and "1g.6gb" in note for note in told)


def _others(driver: Installation, one: OneCard) -> list[int]:
    counts = driver.slice_counts(one.node.name)
    return [count for card, count in counts.items() if card != one.card]
