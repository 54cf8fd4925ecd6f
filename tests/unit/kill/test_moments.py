"""Moments, and the effects that kill at one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.model.effects import Point
from tests.kill.moments import FatalEffects, Moment, give_order, moments


class Killed(BaseException):
    """In the place of a SIGKILL."""


def die() -> None:
    raise Killed


def effects(folder: Path) -> FatalEffects:
    return FatalEffects(folder / "trace", folder / "order", die)


def trace(folder: Path) -> list[str]:
    return (folder / "trace").read_text().splitlines()


@pytest.mark.parametrize(
    ("side", "took_place", "last"),
    [("before", 1, "before cdi.write"), ("after", 2, "after cdi.write")],
)
def test_it_dies_at_the_moment(tmp_path: Path, side: str, took_place: int, last: str) -> None:
    give_order(tmp_path / "order", Moment(Point.CDI_WRITE, side, 2))
    fatal = effects(tmp_path)
    done: list[int] = []

    def write(at: int) -> None:
        with fatal(Point.JOURNAL_SYNC), fatal(Point.CDI_WRITE):
            done.append(at)

    with pytest.raises(Killed):
        list(map(write, range(3)))
    assert len(done) == took_place
    assert trace(tmp_path)[-1] == last


def test_moments_count_from_the_order(tmp_path: Path) -> None:
    fatal = effects(tmp_path)
    with fatal(Point.CDI_WRITE):
        give_order(tmp_path / "order", Moment(Point.CDI_WRITE, "before", 1))
    with pytest.raises(Killed), fatal(Point.CDI_WRITE):
        pass


def test_a_new_order_takes_the_place_of_the_former(tmp_path: Path) -> None:
    fatal = effects(tmp_path)
    for point in (Point.CDI_WRITE, Point.CDI_REMOVE):
        give_order(tmp_path / "order", Moment(point, "before", 1))
    with fatal(Point.CDI_WRITE):
        pass
    with pytest.raises(Killed), fatal(Point.CDI_REMOVE):
        pass


def test_a_trace_gives_every_moment_its_number() -> None:
    lines = ["before cdi.write", "before cdi.write", "after cdi.write", "before cdi.write"]
    assert list(map(str, moments(lines))) == [
        "before cdi.write 1",
        "before cdi.write 2",
        "after cdi.write 1",
        "before cdi.write 3",
    ]


def test_a_moment_reads_what_it_writes() -> None:
    moment = Moment(Point.API_WRITE, "after", 12)
    assert Moment.parse(str(moment)) == moment


@pytest.mark.parametrize("text", ["amid cdi.write 1", "after cdi.wright 1", "after cdi.write"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"amid|wright|unpack"):
        Moment.parse(text)
