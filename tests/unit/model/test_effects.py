"""The seam: a fault can be put before and after each effect, and only there."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from dra_driver.model.effects import Effects, Point


class Faulty(Effects):
    """Notes what it sees, and raises where it is told to."""

    def __init__(self, raise_at: str) -> None:
        self.seen: list[str] = []
        self._raise_at = raise_at

    def before(self, point: Point) -> None:
        self._note(f"before {point}")

    def after(self, point: Point) -> None:
        self._note(f"after {point}")

    def _note(self, what: str) -> None:
        self.seen.append(what)
        if what == self._raise_at:
            raise OSError(what)


ORDER = ["before cdi.write", "before cdi.rename", "after cdi.rename", "after cdi.write"]


@pytest.mark.parametrize("raise_at", ["", *ORDER])
def test_order_of_an_effect_in_another(raise_at: str) -> None:
    """One that has failed has no end, and neither has the one around it."""
    effects = Faulty(raise_at)
    expected = pytest.raises(OSError, match=f"^{raise_at}$") if raise_at else nullcontext()
    with expected, effects(Point.CDI_WRITE), effects(Point.CDI_RENAME):
        pass
    assert effects.seen == (ORDER[: ORDER.index(raise_at) + 1] if raise_at else ORDER)


def test_a_point_names_what_is_affected_and_how() -> None:
    assert len({point.value for point in Point}) == len(Point)
    assert all(point.value.count(".") == 1 for point in Point)
