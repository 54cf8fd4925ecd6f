"""Room inside a card."""

from __future__ import annotations

import uuid

import pytest

from dra_driver.simulator.commands import drs
from dra_driver.simulator.description.resolve import first_state
from dra_driver.simulator.description.spec import MachineSpec
from dra_driver.simulator.state import CardState


def card(**keys: object) -> CardState:
    described = {"bdf": "0000:0d:00.0", "model": "S60", **keys}
    return drs.switch_on(first_state(MachineSpec.model_validate({"cards": [described]})).cards[0])


def filled(of: CardState, profiles: list[int], placement: str) -> CardState:
    for profile in profiles:
        of, _ = drs.create(of, profile, placement=placement, ids="reused")
    return of


@pytest.mark.parametrize(
    ("size", "occupied", "rule", "slots"),
    [
        pytest.param(1, set(), "any", (0,), id="any-first"),
        pytest.param(3, {1, 4}, "any", (0, 2, 3), id="any-scattered"),
        pytest.param(3, {0, 1, 2, 3}, "any", None, id="any-full"),
        pytest.param(1, {0}, "aligned", (1,), id="aligned-one"),
        pytest.param(3, {0}, "aligned", (3, 4, 5), id="aligned-second-half"),
        pytest.param(3, {0, 3}, "aligned", None, id="aligned-sum-fits-place-does-not"),
        pytest.param(6, set(), "aligned", (0, 1, 2, 3, 4, 5), id="aligned-whole"),
        pytest.param(6, {5}, "aligned", None, id="aligned-whole-taken"),
        pytest.param(7, set(), "aligned", None, id="larger-than-the-card"),
    ],
)
def test_place(size: int, occupied: set[int], rule: str, slots: tuple[int, ...] | None) -> None:
    assert drs.place(size, frozenset(occupied), 6, rule) == slots


def test_aligned_refuses_what_any_takes() -> None:
    # Four of size 1, then one on either side of the middle goes: 3 free, in two places.
    gaps = [
        drs.destroy(drs.destroy(filled(card(), [0] * 5, rule), 1), 5) for rule in ("any", "aligned")
    ]

    assert filled(gaps[0], [1], "any").instances
    with pytest.raises(drs.DrsRefused, match=r"no room for 3g\.20gb"):
        filled(gaps[1], [1], "aligned")


@pytest.mark.parametrize("placement", ["any", "aligned"])
@pytest.mark.parametrize("profiles", [[0] * 6, [1, 1], [2], [1, 0, 0, 0]], ids=str)
def test_a_card_holds_no_more_than_its_slots(placement: str, profiles: list[int]) -> None:
    full = filled(card(), profiles, placement)

    assert drs.taken(full) == frozenset(range(6))
    with pytest.raises(drs.DrsRefused, match="no room"):
        filled(full, [0], placement)


def test_number_of_slots_comes_from_the_table() -> None:
    assert card(profileTable="s60-four-way").form.slots == 4


@pytest.mark.parametrize(("rule", "next_id"), [("reused", 1), ("increasing", 3)])
def test_ids_after_a_destroy(rule: str, next_id: int) -> None:
    one, _ = drs.create(card(), 0, placement="any", ids=rule)
    two, second = drs.create(one, 0, placement="any", ids=rule)

    _, third = drs.create(drs.destroy(two, 1), 0, placement="any", ids=rule)

    assert (second.id, third.id) == (2, next_id)


def test_uuids_are_of_rfc_4122() -> None:
    made = {drs.new_uuid() for _ in range(200)}

    assert len(made) == 200
    for text in made:
        parsed = uuid.UUID(text)
        assert (parsed.variant, parsed.version, str(parsed)) == (uuid.RFC_4122, 4, text)


def test_refusals() -> None:
    idle = drs.switch_off(card())
    with pytest.raises(drs.DrsRefused, match="DRS of GCU 0 is off"):
        drs.profiles(idle)
    with pytest.raises(drs.DrsRefused, match="DRS of GCU 0 is off"):
        drs.create(idle, 0, placement="any", ids="reused")
    with pytest.raises(drs.DrsRefused, match="no profile 9"):
        drs.create(card(), 9, placement="any", ids="reused")
    with pytest.raises(drs.DrsRefused, match="no instance 4"):
        drs.destroy(card(), 4)
    with pytest.raises(drs.DrsRefused, match="still has 1 DRS instances"):
        drs.switch_off(filled(card(), [0], "any"))


def test_cards_that_take_no_drs() -> None:
    with pytest.raises(drs.DrsRefused, match="does not support DRS"):
        card(model="T20")
    with pytest.raises(drs.DrsRefused, match="SRIOV"):
        card(virtualization="SRIOV")
