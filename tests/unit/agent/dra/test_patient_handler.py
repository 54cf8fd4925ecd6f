"""A prepare waits for claims that were deleted, and for no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from dra_driver.agent.dra.deleted_claims import PatientHandler
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import DeviceHeld, GcuError, Refused
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from tests.unit.node.world import hold

OLD, NEW = ClaimRef("team", "old", "uid-old"), ClaimRef("team", "new", "uid-new")
HELD = DeviceHeld("the card is held", [OLD.uid, "uid-neighbour"])


class World:
    """A node on which `OLD` has the card of `NEW` for `seconds`; `others` fail besides."""

    def __init__(self, seconds: float, *, deleted: bool = True, **others: GcuError) -> None:
        self.now = 0.0
        self.calls = 0
        self._end = seconds
        self._deleted = deleted
        self._others = others
        self._held = Ledger().apply(record(ClaimStep.PREPARE_COMPLETED, OLD, (hold(0),)))
        self.handler = PatientHandler(
            self, self.ledger, self.deleted_among, clock=lambda: self.now, pause=self.pause
        )

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> dict[str, Prepared | GcuError]:
        self.calls += 1
        result: Prepared | GcuError = HELD if self.now < self._end else ()
        return {**dict.fromkeys((each.uid for each in refs), result), **self._others}

    def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, GcuError | None]:
        return dict.fromkeys(each.uid for each in refs)

    def ledger(self) -> Ledger:
        return self._held if self.now < self._end else Ledger()

    def deleted_among(self, uids: Collection[str]) -> frozenset[str]:
        """Of a shared card, others may have slices beside it."""
        assert uids == HELD.holders
        return frozenset({OLD.uid} if self._deleted else ())

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_it_is_prepared_as_soon_as_the_card_is_free() -> None:
    world = World(12.0)
    assert world.handler.prepare([NEW], is_cancelled=lambda: False) == {NEW.uid: ()}
    assert (world.now, world.calls) == (12.0, 2)


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(12.0, deleted=False), id="a claim that is allocated holds it"),
        pytest.param(World(12.0, other=Refused("malformed")), id="another claim fails as well"),
    ],
)
def test_it_does_not_wait(world: World) -> None:
    assert world.handler.prepare([NEW], is_cancelled=lambda: False)[NEW.uid] is HELD
    assert (world.now, world.calls) == (0.0, 1)


def test_the_kubelet_is_answered_before_it_gives_up() -> None:
    world = World(60.0)
    assert world.handler.prepare([NEW], is_cancelled=lambda: False) == {NEW.uid: HELD}
    assert 30 < world.now < 40


def test_a_call_that_was_given_up_ends() -> None:
    world = World(12.0)
    assert world.handler.prepare([NEW], is_cancelled=lambda: world.now >= 2) == {NEW.uid: HELD}
    assert world.now == 2.0
