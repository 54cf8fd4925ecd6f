"""What the records of the journal say of claims, and whether another one may hold a card."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.devices.device import device_name
from dra_driver.model.errors import Refused
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import (
    CardRecordKind,
    ClaimStep,
    PreparedDevice,
    card_record,
    decode,
    encode,
    record,
)
from tests.unit.node.checkpoint.fold import ledger, refolded
from tests.unit.node.world import CARDS, hold

HOLDER = ClaimRef("team", "holder", "uid-holder")
ASKER = ClaimRef("other", "asker", "uid-asker")


def share(card: int, share_id: str, mode: Mode = Mode.SHARED) -> PreparedDevice:
    return hold(card, mode=mode, share_id=share_id, consumed={"slices": "2"})


@given(st.lists(st.sampled_from(ClaimStep), min_size=1, max_size=5))
def test_the_last_record_gives_the_state(kinds: list[ClaimStep]) -> None:
    folded = ledger(*(record(kind, HOLDER, (hold(0),)) for kind in kinds))
    held = folded.claims.get(HOLDER.uid)
    assert (held.state if held else ClaimStep.FORGOTTEN) == kinds[-1]
    assert refolded(folded) == folded


def test_what_a_newer_version_wrote_is_kept_while_its_claim_lives() -> None:
    claim = {"namespace": "team", "name": "holder", "uid": "uid-holder"}
    instances = [{"kind": "instance", "claim": claim, "id": n} for n in (1, 2)]
    first = record(ClaimStep.PREPARE_STARTED, HOLDER, (hold(0),))
    state = ledger(first, *(decode(encode(raw)) for raw in instances))
    state = state.apply(record(ClaimStep.PREPARE_COMPLETED, HOLDER, (hold(0),)))
    kept = list(refolded(state).raw_records())
    assert [raw for raw in kept if raw["kind"] == "instance"] == instances
    assert refolded(state).claims["uid-holder"].state is ClaimStep.PREPARE_COMPLETED
    assert not list(state.apply(record(ClaimStep.FORGOTTEN, HOLDER, ())).raw_records())


def test_what_belongs_to_no_claim_is_kept() -> None:
    state = ledger(decode(b'{"kind":"profiles","table":[1]}'))
    assert list(refolded(state).raw_records()) == [{"kind": "profiles", "table": [1]}]


ADMITTED = [
    pytest.param((hold(1),), (hold(0),), id="another card"),
    pytest.param((share(0, "a"),), (share(0, "b"),), id="another share of a shared card"),
    pytest.param(
        (share(0, "a", Mode.DRS),), (share(0, "b", Mode.DRS),), id="another instance of a card"
    ),
    pytest.param((hold(1),), (share(0, "a"), share(0, "b")), id="two shares for one claim"),
]
REFUSED = [
    pytest.param(
        (hold(0),),
        (hold(0),),
        r"card 0000:0d:00\.0 cannot be given to claim other/asker in mode whole: claim "
        r"team/holder \(UID uid-holder\) holds it in mode whole",
        id="held whole",
    ),
    pytest.param(
        (hold(0),), (share(0, "a"),), "in mode shared: .* in mode whole", id="shared after whole"
    ),
    pytest.param((share(0, "a"),), (hold(0),), "holds it in mode shared", id="whole after shared"),
    pytest.param(
        (share(0, "a"),), (share(0, "b", Mode.DRS),), "in mode drs", id="drs after shared"
    ),
    pytest.param(
        (share(0, "a"),),
        (share(0, "a"),),
        "share a of device shared-0000-0d-00-0 cannot be given",
        id="the same share",
    ),
    pytest.param((hold(1),), (hold(0), hold(0)), "was allocated card .* twice", id="twice"),
    pytest.param((hold(1),), (hold(0), share(0, "a")), "twice", id="two modes in one claim"),
]


@pytest.mark.parametrize(("held", "asked"), ADMITTED)
def test_admitted(held: tuple[PreparedDevice, ...], asked: tuple[PreparedDevice, ...]) -> None:
    ledger(record(ClaimStep.PREPARE_COMPLETED, HOLDER, held)).admit(ASKER, asked)


@pytest.mark.parametrize(
    "kind", [ClaimStep.PREPARE_STARTED, ClaimStep.PREPARE_COMPLETED, ClaimStep.UNPREPARE_STARTED]
)
@pytest.mark.parametrize(("held", "asked", "reason"), REFUSED)
def test_refused_with_the_holder(
    held: tuple[PreparedDevice, ...],
    asked: tuple[PreparedDevice, ...],
    reason: str,
    kind: ClaimStep,
) -> None:
    with pytest.raises(Refused, match=reason):
        ledger(record(kind, HOLDER, held)).admit(ASKER, asked)


def sized(share_id: str, amount: str, mode: Mode = Mode.SHARED) -> PreparedDevice:
    capacity = "slices" if mode is Mode.SHARED else "size"
    return hold(0, mode=mode, share_id=share_id, consumed={capacity: amount})


SHARED = "shared-0000-0d-00-0"
DRS = "drs-0000-0d-00-0"


@pytest.mark.parametrize(
    ("held", "asked", "totals", "reason"),
    [
        pytest.param([sized("a", "4")], [sized("b", "2")], {SHARED: 6}, "", id="the rest"),
        pytest.param([], [sized("b", "3"), sized("c", "3")], {SHARED: 6}, "", id="all of it"),
        pytest.param(
            [sized("a", "4"), sized("x", "1")],
            [sized("b", "2")],
            {SHARED: 6},
            r"2 of the 6 slices of card 0000:0d:00\.0, and 1 are left: claim team/holder holds 5",
            id="one too many",
        ),
        pytest.param(
            [], [sized("b", "4"), sized("c", "3")], {SHARED: 6}, "7 of the 6", id="its own requests"
        ),
        pytest.param(
            [sized("a", "3", Mode.DRS)],
            [sized("b", "6", Mode.DRS)],
            {DRS: 6},
            "6 of the 6 units of size .* 3 are left",
            id="sizes",
        ),
        pytest.param([sized("a", "6")], [sized("b", "6")], {}, "", id="not counted"),
        pytest.param([sized("a", "6")], [sized("b", "1")], {SHARED: 8}, "", id="by another count"),
        pytest.param(
            [sized("a", "some")], [sized("b", "1")], {SHARED: 6}, "0 are left", id="unknown amount"
        ),
    ],
)
def test_slices_and_sizes_are_counted(
    held: list[PreparedDevice], asked: list[PreparedDevice], totals: dict[str, int], reason: str
) -> None:
    state = ledger(record(ClaimStep.PREPARE_COMPLETED, HOLDER, tuple(held)))
    with pytest.raises(Refused, match=reason) if reason else nullcontext():
        state.admit(ASKER, asked, totals)


def test_drs_mode_is_ours_until_it_is_switched_off() -> None:
    intent = record(ClaimStep.PREPARE_STARTED, HOLDER, (sized("a", "1", Mode.DRS),))
    forgotten = record(ClaimStep.FORGOTTEN, HOLDER, ())
    state = ledger(intent, forgotten)
    assert state.switched == {CARDS[0]}
    assert refolded(state) == state
    assert ledger(intent, forgotten, card_record(CardRecordKind.DRS_OFF, CARDS[0])) == Ledger()
    assert ledger(card_record(CardRecordKind.DRS_ON, CARDS[1])).switched == {CARDS[1]}
    assert not ledger(
        record(ClaimStep.PREPARE_COMPLETED, HOLDER, (hold(0), sized("a", "1")))
    ).switched


def test_the_instances_of_a_card() -> None:
    one, two = Instance(1, "1g.6gb", "a"), Instance(2, "1g.6gb")
    holds = [replace(sized(str(one.id), "1", Mode.DRS), instance=one) for one in (one, two)]
    state = ledger(record(ClaimStep.PREPARE_COMPLETED, HOLDER, (*holds, sized("c", "1", Mode.DRS))))
    assert state.instances(CARDS[0]) == (one, two)
    assert state.instances(CARDS[1]) == ()
    assert refolded(state) == state


def test_a_claim_does_not_stand_in_its_own_way() -> None:
    ledger(record(ClaimStep.PREPARE_STARTED, HOLDER, (hold(0),))).admit(HOLDER, (hold(0), hold(1)))


def test_a_card_is_not_one_whose_address_ends_like_its_own() -> None:
    near, far = (PciAddress.parse(f"{domain}:0d:00.0") for domain in ("0000", "10000"))
    held = [replace(hold(0), device_name=device_name(Mode.WHOLE, card)) for card in (near, far)]
    state = ledger(record(ClaimStep.PREPARE_COMPLETED, HOLDER, (held[1],)))
    assert [each for _, each in state.holders_of(far)] == [held[1]]
    assert state.holders_of(near) == ()
    state.admit(ASKER, (held[0],))


def test_holders_are_found_by_card() -> None:
    state = ledger(
        record(ClaimStep.PREPARE_COMPLETED, HOLDER, (share(0, "a"), hold(1))),
        record(ClaimStep.PREPARE_COMPLETED, ASKER, (share(0, "b"),)),
    )
    found = [(held.owner, of.share_id) for held, of in state.holders_of(CARDS[0])]
    assert found == [(HOLDER, "a"), (ASKER, "b")]
    assert not state.holders_of(CARDS[2])
