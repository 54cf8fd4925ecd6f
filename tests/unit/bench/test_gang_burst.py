"""What `make bench-gang_burst` counts."""

from __future__ import annotations

import itertools

from bench.gang_burst import figures, shares
from bench.gang_progress import GangProgress
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object


def bound(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"nodeName": "a"}, "status": {}}


def test_rates_and_when_gangs_are_whole() -> None:
    """A pod is bound each second."""
    clock = itertools.count(1)
    progress = GangProgress(lambda: float(next(clock)))
    gangs = [["a", "b"], ["c", "d", "e", "f", "g", "h"], ["i", "j"]]
    for name in "abcdefghij":
        progress.on_event(Change.MODIFIED, bound(name))
    assert figures(0.0, progress, gangs) == {
        "bound, %": 100.0,
        "pods/s": 1.0,
        "pods/s, 10 to 90 %": 1.0,
        "first gang, s": 2.0,
        "last gang, s": 10.0,
    }


def test_what_was_not_bound_in_time_is_left_out() -> None:
    clock = itertools.count(1)
    progress = GangProgress(lambda: float(next(clock)))
    for name in "abc":
        progress.on_event(Change.MODIFIED, bound(name))
    row = figures(0.0, progress, [["a", "b"], ["c", "d"]])
    assert (row["bound, %"], row["pods/s"], row["last gang, s"]) == (75.0, 1.0, 2.0)


def test_each_rate_as_a_share_of_that_without_claims() -> None:
    rows = {"without claims": {"pods/s": 200.0}, "named": {"pods/s": 50.0}}
    assert shares(rows) == {"without claims": 1.0, "named": 0.25}
    assert shares({"named": {"pods/s": 50.0}}) == {}
