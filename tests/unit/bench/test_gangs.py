"""What `make bench-gangs` counts."""

from __future__ import annotations

from bench.gangs import Gang, figures

RACKS = {"a": "r1", "b": "r1", "c": "r2"}


def test_gangs_that_were_named() -> None:
    gangs = [
        Gang(1.0, ["a", "a", "b"], ["a", "a", "a"]),
        Gang(3.0, ["c"], ["a"]),
        Gang(2.0, ["b", "c"], ["", "c"]),
    ]
    assert figures(gangs, RACKS) == {
        "seconds, p50": 2.0,
        "seconds, p90": 3.0,
        "in one rack, %": 66.667,
        "nodes of a gang": 1.667,
        "same rack, %": 33.333,
        "followed, %": 50.0,
    }


def test_without_names_nothing_is_said_of_them() -> None:
    row = figures([Gang(1.0, ["a"], [""])], RACKS)
    assert [*row] == ["seconds, p50", "seconds, p90", "in one rack, %", "nodes of a gang"]
