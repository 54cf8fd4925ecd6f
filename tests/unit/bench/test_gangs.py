"""What `make bench-gangs` counts."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from bench.gang_progress import GangProgress
from bench.gangs import Gang, Measured, figures
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from tests.control_plane.pod_groups import OUR_GATE

RACKS = {"a": "r1", "b": "r1", "c": "r2"}


def test_gangs_that_were_named() -> None:
    gangs = [
        Gang(1.0, ["a", "a", "b"], ["a", "a", "a"], 0.1, 0.3),
        Gang(3.0, ["c"], ["a"], 0.2, 0.4),
        Gang(2.0, ["b", "c"], ["", "c"], 0.3, 0.5),
    ]
    assert figures(gangs, RACKS) == {
        "seconds, p50": 2.0,
        "seconds, p90": 3.0,
        "in one rack, %": 66.667,
        "nodes of a gang": 1.667,
        "names, p50": 0.2,
        "gates, p50": 0.4,
        "same rack, %": 33.333,
        "followed, %": 50.0,
    }


def test_without_names_nothing_is_said_of_them() -> None:
    row = figures([Gang(1.0, ["a"], [""])], RACKS)
    assert [*row] == ["seconds, p50", "seconds, p90", "in one rack, %", "nodes of a gang"]


def test_of_all_rounds_what_a_pod_takes() -> None:
    measured = Measured()
    for number in (1, 3):
        gangs = [Gang(1.0, ["a", "b"], ["", ""])]
        measured.add(
            Measured(gangs, Counter({"etcd": number / 10}), Counter({"PATCH pods": number}))
        )
    assert measured.cpu_ms() == {"etcd, ms a pod": 100.0}
    assert measured.writes_of_a_pod() == {"PATCH pods": 1.0}


def seen(*, gated: bool, named: str = "", bound: str = "") -> Object:
    spec: Object = {"schedulingGates": OUR_GATE if gated else [], "nodeName": bound}
    return {"metadata": {"name": "p"}, "spec": spec, "status": {"nominatedNodeName": named}}


def test_what_a_pod_was_first_counts() -> None:
    progress = GangProgress(itertools.count(1).__next__)
    for pod in [
        seen(gated=True, named="a"),
        seen(gated=False, named="a"),
        seen(gated=False, named="a", bound="a"),
        seen(gated=False, named="a", bound="a"),
    ]:
        progress.on_event(Change.MODIFIED, pod)
    assert (progress.named, progress.lifted, progress.bound) == ({"p": 1}, {"p": 2}, {"p": 3})
    assert progress.wait_for_bound(1, 0.0) == 3


def test_a_name_by_kube_scheduler_is_none_of_ours() -> None:
    progress = GangProgress(lambda: 0.0)
    progress.on_event(Change.MODIFIED, seen(gated=False, named="a"))
    assert not progress.named
    with pytest.raises(TimeoutError, match="0 of 1 were bound"):
        progress.wait_for_bound(1, 0.0)
