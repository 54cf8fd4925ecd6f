"""The seam: a fault can be put before and after each effect, and only there."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from dra_driver.model.effects import Effects, Point


class Faulty(Effects):
    """Notes what it sees, and raises where it is told to."""

    def __init__(self, raise_at: str = "") -> None:
        self.seen: list[str] = []
        self._raise_at = raise_at

    def before(self, point: Point) -> None:
        self._note(f"before {point}")

    def after(self, point: Point) -> None:
        self._note(f"after {point}")

    def note(self, what: str) -> None:
        self._note(what)

    def _note(self, what: str) -> None:
        self.seen.append(what)
        if what == self._raise_at:
            raise OSError(what)


@pytest.mark.parametrize(
    ("raise_at", "seen"),
    [
        ("", ["before cdi.write", "the effect", "after cdi.write"]),
        ("before cdi.write", ["before cdi.write"]),
        ("the effect", ["before cdi.write", "the effect"]),
        ("after cdi.write", ["before cdi.write", "the effect", "after cdi.write"]),
    ],
    ids=["no fault", "before", "the effect itself fails", "after"],
)
def test_order_of_an_effect(raise_at: str, seen: list[str]) -> None:
    effects = Faulty(raise_at)
    expected = pytest.raises(OSError, match=f"^{raise_at}$") if raise_at else nullcontext()
    with expected, effects(Point.CDI_WRITE):
        effects.note("the effect")
    assert effects.seen == seen


def test_a_point_names_what_is_affected_and_how() -> None:
    assert len({point.value for point in Point}) == len(Point)
    assert all(point.value.count(".") == 1 for point in Point)
