from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from dra_driver.model.claims.measures import Share
from dra_driver.model.devices.node_cards import (
    CardKind,
    HeldInstance,
    Hold,
    NodeCard,
    parse_cards,
    render_cards,
)
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

FREE = NodeCard(PciAddress.parse("0000:0d:00.0"), index=0, minor=1)
USED = NodeCard(
    PciAddress.parse("0000:0e:00.0"),
    index=1,
    minor=0,
    whole=False,
    slices=6,
    profiles=("1g.6gb", "3g.20gb"),
    total=6,
    mode=Mode.DRS,
    held=(
        Hold("4f0e", "main", 3, HeldInstance("3g.20gb", 1, 4, "7f2d")),
        Hold("4f0e", "side", 1),
        Hold("", "", 1),
    ),
    problem="lost",
    bridges="0c:02.0/0d:00.0/0e:00.0",
    root="pci0000:0c",
    numa=0,
    model="S60",
    uuid="TPUA1",
    memory_mib=42976,
)


@pytest.mark.parametrize(
    "cards", [(), (FREE,), (FREE, USED)], ids=["none", "free card", "card with everything"]
)
def test_what_is_rendered_is_read_again(cards: tuple[NodeCard, ...]) -> None:
    assert parse_cards(render_cards(cards)) == cards


def test_a_free_card_says_nothing_of_what_it_lacks() -> None:
    raw = json.loads(render_cards((FREE,)))
    assert raw == {
        "version": 1,
        "cards": [{"pci": "0000:0d:00.0", "index": 0, "minor": 1, "whole": True}],
    }


def test_a_container_that_the_kubelet_has_not_recorded() -> None:
    card = '{"pci": "0000:0d:00.0", "index": 0, "minor": 1, "whole": true, "mode": "shared"'
    [found] = parse_cards(f'{{"version": 1, "cards": [{card}, "held": [{{"amount": 2}}]}}]}}')
    assert found.held == (Hold("", "", 2),)
    assert '"held":[{"amount":2}]' in render_cards((found,))


def test_fields_of_a_later_agent_are_left_alone() -> None:
    raw = json.loads(render_cards((FREE,)))
    raw["cards"][0]["colour"] = "red"
    assert parse_cards(json.dumps(raw)) == (FREE,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"cards": []}', "cannot be read"),
        ('{"version": 1, "cards": [{"pci": "0d:00.0"}]}', "cannot be read|not a full PCI"),
        ('{"version": 1, "cards": [{"pci": 6, "index": 0, "minor": 0}]}', "cannot be read"),
        (render_cards((USED,)).replace('"drs"', '"half"'), "cannot be read"),
        (render_cards((replace(USED, mode=None),)), "is held and in no mode"),
        (render_cards((USED,)).replace('"amount":3,', ""), "nothing of card .* is held"),
        ('{"version": 2, "cards": [{}]}', "has version 2"),
        (render_cards((FREE,)).replace('"minor":1', '"minor":Infinity'), "cannot be read"),
        ('{"version": 1, "cards": ' + "[" * 100_000, "cannot be read"),
    ],
    ids=[
        "no JSON",
        "no object",
        "no version",
        "short address",
        "no address",
        "unknown mode",
        "held in no mode",
        "held without an amount",
        "later version",
        "a number without end",
        "brackets without end",
    ],
)
def test_what_is_no_report_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        parse_cards(text)


S60 = CardKind("S60", 42976, 6, ("1g.6gb", "3g.20gb", "6g.40gb"), 6)


def test_instances_have_what_their_names_say() -> None:
    assert S60.shares(Mode.DRS) == (
        Share(1, 6144, 100 / 6),
        Share(3, 20480, 50),
        Share(6, 40960, 100),
    )
    assert S60.describe(Mode.DRS) == "S60 (1g.6gb, 3g.20gb, 6g.40gb)"


def test_slices_are_equal_parts() -> None:
    shares = S60.shares(Mode.SHARED)
    assert len(shares) == 6
    assert shares[1] == Share(2, 14324, 200 / 6)
    assert S60.describe(Mode.SHARED) == "S60 (6 slices of 7162 MiB)"


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (replace(S60, profiles=(), total=0), Mode.DRS),
        (replace(S60, total=0), Mode.DRS),
        (replace(S60, slices=0), Mode.SHARED),
        (replace(S60, slices=10**9), Mode.SHARED),
        (replace(S60, memory_mib=0), Mode.SHARED),
    ],
    ids=["no profiles", "no size", "not shared", "absurd", "gone"],
)
def test_what_is_not_offered(kind: CardKind, mode: Mode) -> None:
    assert kind.shares(mode) == ()
