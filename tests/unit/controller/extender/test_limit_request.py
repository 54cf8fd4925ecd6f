from __future__ import annotations

import pytest

from controller.extender.limit_request import LimitRequest, concerns_us, parse_limits
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.build import DRS, SHARED, WHOLE, container, pod

SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("asking", "mode", "containers", "total"),
    [
        (pod("p", {SHARED: "2"}), Mode.SHARED, (("c0", 2),), 2),
        (pod("p", {SHARED: 2}, {}, {SHARED: "1"}), Mode.SHARED, (("c0", 2), ("c2", 1)), 3),
        (pod("p", {DRS: "3"}, {DRS: "1"}), Mode.DRS, (("c0", 3), ("c1", 1)), 4),
        (pod("p", {WHOLE: "8", "cpu": "1"}), Mode.WHOLE, (("c0", 8),), 8),
        (
            pod("p", {SHARED: "2"}, init=(container("i", {SHARED: "4"}),)),
            Mode.SHARED,
            (("c0", 2),),
            4,
        ),
        (
            pod("p", {SHARED: "2"}, init=(container("i", {SHARED: "1"}),)),
            Mode.SHARED,
            (("c0", 2),),
            2,
        ),
        (
            pod("p", {DRS: "1"}, init=(container("s", {DRS: "3"}, **SIDECAR),)),
            Mode.DRS,
            (("s", 3), ("c0", 1)),
            4,
        ),
        (
            pod(
                "p",
                {WHOLE: "1"},
                init=(container("s", {WHOLE: "1"}, **SIDECAR), container("i", {WHOLE: "2"})),
            ),
            Mode.WHOLE,
            (("s", 1), ("c0", 1)),
            3,
        ),
        (pod("p", {WHOLE: "0", SHARED: "1"}), Mode.SHARED, (("c0", 1),), 1),
        (
            pod("p", {DRS: "3"}, {DRS: "1"}, init=(container("i", {DRS: "3"}),)),
            Mode.DRS,
            (("c0", 3), ("c1", 1)),
            4,
        ),
        (pod("p", {}, init=(container("i", {DRS: "3"}),)), Mode.DRS, (("i", 3),), 3),
        (
            pod("p", {}, init=(container("i", {SHARED: "1"}), container("j", {SHARED: "2"}))),
            Mode.SHARED,
            (("j", 2),),
            2,
        ),
        (
            pod(
                "p",
                {DRS: "1"},
                init=(container("s", {DRS: "3"}, **SIDECAR), container("i", {DRS: "1"})),
            ),
            Mode.DRS,
            (("s", 3), ("c0", 1)),
            4,
        ),
        (
            pod(
                "p",
                {},
                init=(container("s", {DRS: "3"}, **SIDECAR), container("i", {DRS: "3"})),
            ),
            Mode.DRS,
            (("s", 3), ("i", 3)),
            6,
        ),
    ],
    ids=[
        "slices",
        "slices of two containers",
        "two DRS instances",
        "whole cards",
        "init container that asks more",
        "init container that asks less",
        "sidecar",
        "sidecar that stays while an init container runs",
        "nothing of one kind",
        "an instance that is handed on",
        "an instance of an init container alone",
        "slices of init containers alone",
        "an instance that is handed on beside a sidecar's",
        "an instance of an init container that a sidecar does not get",
    ],
)
def test_what_a_pod_asks(
    asking: Object, mode: Mode, containers: tuple[tuple[str, int], ...], total: int
) -> None:
    assert parse_limits(asking) == LimitRequest(mode, containers, total)


@pytest.mark.parametrize(
    ("asking", "words"),
    [
        (pod("p", {SHARED: "1", DRS: "1"}), "asks for enflame.com/shared-gcu and enflame.com/drs"),
        (pod("p", {SHARED: "1"}, {WHOLE: "1"}), "one kind"),
        (
            pod("p", {DRS: "1"}, init=(container("fetch", {DRS: "3"}),)),
            "init container fetch asks for a DRS instance of size 3, and container c0",
        ),
        (
            pod(
                "p",
                {DRS: "1"},
                init=(container("s", {DRS: "3"}, **SIDECAR), container("fetch", {DRS: "3"})),
            ),
            "init container fetch asks for a DRS instance of size 3, and container c0",
        ),
        (pod("p", {SHARED: "two"}), "container c0: the limit enflame.com/shared-gcu"),
    ],
    ids=[
        "two kinds in a container",
        "two kinds in a pod",
        "an instance that would change its size",
        "an instance that would change its size beside a sidecar's",
        "no number",
    ],
)
def test_what_no_node_can_give_is_refused(asking: Object, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_limits(asking)


@pytest.mark.parametrize(
    ("asking", "concerned"),
    [(pod("p", {}), False), (pod("p", {"cpu": "1"}), False), (pod("p", {SHARED: "0"}), True)],
    ids=["nothing", "something else", "no slices"],
)
def test_pods_that_ask_for_nothing(asking: Object, concerned: bool) -> None:
    assert parse_limits(asking) is None
    assert concerns_us(asking) is concerned
