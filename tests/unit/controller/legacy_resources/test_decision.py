"""Whether limits of new pods become claims, by what nodes offer as time goes by."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from controller.legacy_resources.decision import DecisionRule, LimitsDecision
from controller.legacy_resources.foreign_resources import ForeignResources, foreign_resources
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ANNOTATION_CARDS,
    RESOURCE_COUNT,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)

VGCU = "enflame.com/vgcu"
NOTHING: Mapping[str, str] = {}
SHARES: Mapping[str, tuple[str, ...]] = {"node-1": (RESOURCE_SHARED,)}


def node(
    allocatable: Mapping[str, str] = NOTHING, *, name: str = "node-1", serves: bool = False
) -> Object:
    """`serves`: an agent serves there by the device plugin."""
    metadata: Object = {"name": name}
    if serves:
        metadata["annotations"] = {ANNOTATION_CARDS: "[]"}
    return {"metadata": metadata, "status": {"allocatable": {"cpu": "8", **allocatable}}}


OFFERED: dict[str, tuple[Object, tuple[str, ...]]] = {
    "nothing": (node(), ()),
    "no status yet": ({"metadata": {"name": "n"}}, ()),
    "whole cards": (node({RESOURCE_WHOLE: "8"}), (RESOURCE_WHOLE,)),
    "slices and instances": (
        node({RESOURCE_SHARED: "48", RESOURCE_DRS: "1"}),
        (RESOURCE_DRS, RESOURCE_SHARED),
    ),
    "a name that only another scheduler knows": (node({VGCU: "8"}), (VGCU,)),
    "a plugin that ended": (node({RESOURCE_WHOLE: "0"}), ()),
    "the count of cards, which agents have registered": (node({RESOURCE_COUNT: "8"}), ()),
    "another vendor": (node({"nvidia.com/gpu": "8"}), ()),
    "an agent, for a kubelet without DRA": (node({RESOURCE_WHOLE: "8"}, serves=True), ()),
    "an agent, and somebody else": (
        node({RESOURCE_WHOLE: "8", VGCU: "8"}, serves=True),
        (VGCU,),
    ),
}


@pytest.mark.parametrize(("found", "names"), OFFERED.values(), ids=OFFERED)
def test_whose_resources_they_are(found: Object, names: tuple[str, ...]) -> None:
    assert foreign_resources(found) == names


def test_nodes_come_change_and_go() -> None:
    foreign = ForeignResources()
    assert foreign.by_node() is None
    foreign.on_replace([node({VGCU: "1"}, name="a"), node(name="b")])
    assert foreign.by_node() == {"a": (VGCU,)}
    foreign.on_event(Change.MODIFIED, node({RESOURCE_WHOLE: "1"}, name="b"))
    foreign.on_event(Change.MODIFIED, node({VGCU: "0"}, name="a"))
    assert foreign.by_node() == {"b": (RESOURCE_WHOLE,)}
    foreign.on_event(Change.DELETED, node({RESOURCE_WHOLE: "1"}, name="b"))
    assert foreign.by_node() == {}


class Rule:
    """A rule with a delay of 60 s, whose time is the test's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rule = DecisionRule(60.0, lambda: self.now)

    def at(
        self, now: float, foreign: Mapping[str, tuple[str, ...]], translates: bool | None
    ) -> bool | None:
        """What is decided; None while the decision in force stays."""
        self.now = now
        found = self.rule.decide(foreign, translates)
        return None if found is None else found.translate


@pytest.mark.parametrize("before", [None, True])
def test_at_once_where_nobody_else_is(before: bool | None) -> None:
    assert Rule().at(0, {}, before) is True


@pytest.mark.parametrize("before", [None, True, False])
def test_one_node_of_somebody_else_is_enough(before: bool | None) -> None:
    assert Rule().at(0, SHARES, before) is False


def test_a_plugin_that_is_away_for_less_than_the_delay_is_awaited() -> None:
    rule = Rule()
    steps: list[tuple[float, Mapping[str, tuple[str, ...]], bool | None]] = [
        (0, {}, None),
        (59, {}, None),
        (59.5, SHARES, False),  # it is back
        (60, {}, None),
        (119, {}, None),
        (120, {}, True),
    ]
    assert [rule.at(now, foreign, False) for now, foreign, _ in steps] == [
        decided for *_, decided in steps
    ]


def test_a_new_leader_measures_the_delay_anew() -> None:
    rule = Rule()
    rule.at(0, {}, False)
    rule.rule.forget()
    assert rule.at(60, {}, False) is None
    assert rule.at(120, {}, False) is True


def test_the_reason_does_not_change_with_the_number_of_nodes() -> None:
    """It is written into the ServiceAccount; a hundred nodes would be a hundred writes."""
    rule = DecisionRule(0.0, lambda: 0.0)
    one = rule.decide(SHARES, None)
    two = rule.decide({**SHARES, "node-0": (RESOURCE_SHARED,)}, None)
    assert one is not None
    assert two is not None
    assert one.reason == two.reason
    assert "on node node-1)" in one.note
    assert "on node node-0, and 1 more)" in two.note


@pytest.mark.parametrize("translate", [True, False])
def test_what_the_event_says_fits_into_one(translate: bool) -> None:
    decision = LimitsDecision(translate, "r", "on node n")
    assert decision.note.startswith("r")
    assert len(decision.note) < 700
