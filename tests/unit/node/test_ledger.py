from __future__ import annotations

import pytest

from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.node.ledger import Ledger, State
from dra_driver.node.records import Hold, Kind, Record, decode, encode, record
from tests.unit.node.world import CARDS, hold

HOLDER = ClaimRef("team", "holder", "uid-holder")
ASKER = ClaimRef("other", "asker", "uid-asker")


def ledger(*records: Record) -> Ledger:
    state = Ledger()
    for entry in records:
        state = state.apply(entry)
    return state


def refolded(state: Ledger) -> Ledger:
    return ledger(*(decode(encode(raw)) for raw in state.raw_records()))


def share(card: int, share_id: str, mode: Mode = Mode.SHARED) -> Hold:
    return hold(card, mode=mode, share_id=share_id, consumed={"slices": "2"})


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        ((Kind.INTENT,), State.INTENT),
        ((Kind.INTENT, Kind.PREPARED), State.PREPARED),
        ((Kind.PREPARED,), State.PREPARED),
        ((Kind.INTENT, Kind.PREPARED, Kind.UNPREPARING), State.UNPREPARING),
        ((Kind.INTENT, Kind.FORGOTTEN), None),
        ((Kind.FORGOTTEN,), None),
        ((Kind.INTENT, Kind.PREPARED, Kind.PREPARED), State.PREPARED),
        ((Kind.INTENT, Kind.FORGOTTEN, Kind.INTENT), State.INTENT),
    ],
    ids=str,
)
def test_the_last_record_gives_the_state(kinds: tuple[Kind, ...], state: State | None) -> None:
    folded = ledger(*(record(kind, HOLDER, (hold(0),)) for kind in kinds))
    held = folded.claims.get(HOLDER.uid)
    assert (held.state if held else None) == state
    assert refolded(folded) == folded


def test_what_a_newer_version_wrote_is_kept_while_its_claim_lives() -> None:
    claim = {"namespace": "team", "name": "holder", "uid": "uid-holder"}
    instances = [{"kind": "instance", "claim": claim, "id": n} for n in (1, 2)]
    first = record(Kind.INTENT, HOLDER, (hold(0),))
    state = ledger(first, *(decode(encode(raw)) for raw in instances))
    state = state.apply(record(Kind.PREPARED, HOLDER, (hold(0),)))
    kept = list(refolded(state).raw_records())
    assert [raw for raw in kept if raw["kind"] == "instance"] == instances
    assert refolded(state).claims["uid-holder"].state is State.PREPARED
    assert not list(state.apply(record(Kind.FORGOTTEN, HOLDER, ())).raw_records())


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
def test_admitted(held: tuple[Hold, ...], asked: tuple[Hold, ...]) -> None:
    ledger(record(Kind.PREPARED, HOLDER, held)).admit(ASKER, asked)


@pytest.mark.parametrize("kind", [Kind.INTENT, Kind.PREPARED, Kind.UNPREPARING])
@pytest.mark.parametrize(("held", "asked", "reason"), REFUSED)
def test_refused_with_the_holder(
    held: tuple[Hold, ...], asked: tuple[Hold, ...], reason: str, kind: Kind
) -> None:
    with pytest.raises(Refused, match=reason):
        ledger(record(kind, HOLDER, held)).admit(ASKER, asked)


def test_a_claim_does_not_stand_in_its_own_way() -> None:
    ledger(record(Kind.INTENT, HOLDER, (hold(0),))).admit(HOLDER, (hold(0), hold(1)))


def test_holders_are_found_by_card() -> None:
    state = ledger(
        record(Kind.PREPARED, HOLDER, (share(0, "a"), hold(1))),
        record(Kind.PREPARED, ASKER, (share(0, "b"),)),
    )
    found = [(held.claim, of.share_id) for held, of in state.holders_of(CARDS[0])]
    assert found == [(HOLDER, "a"), (ASKER, "b")]
    assert not state.holders_of(CARDS[2])
