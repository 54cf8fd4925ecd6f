"""What a card that an agent reports is given out in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_driver.model.claims.measures import Share
from dra_driver.model.devices.card_kind import CardKind
from dra_driver.model.mode import Mode

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
