"""Which Nodes have a device plugin that gives GCUs to pods, and how often one asks."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.agent.cards.foreign_plugin import ForeignPluginDetector, offered_resources
from dra_driver.agent.lifecycle.serving_mode import ServingDecision, ServingMode, ServingState
from dra_driver.kube.api import Api
from dra_driver.model.claims.claim import Object
from tests.unit.agent.labelled_node import LabelledNode


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        ({}, ()),
        ({"allocatable": {"cpu": "4", "example.com/gpu": "1"}}, ()),
        ({"allocatable": {"enflame.com/gcu": "0"}, "capacity": {"enflame.com/gcu": "8"}}, ()),
        ({"allocatable": {"enflame.com/gcu": "8"}}, ("enflame.com/gcu",)),
        (
            {"allocatable": {"enflame.com/drs-gcu": "6", "enflame.com/shared-gcu": "6"}},
            ("enflame.com/shared-gcu", "enflame.com/drs-gcu"),
        ),
    ],
    ids=["a new node", "others", "one that has ended", "whole cards", "parts of cards"],
)
def test_what_the_node_has_to_give(status: Object, offered: tuple[str, ...]) -> None:
    assert offered_resources({"metadata": {"name": "n"}, "status": status}) == offered


def test_it_asks_rarely_but_for_the_end_of_a_problem() -> None:
    now, node = [0.0], LabelledNode()
    serving = ServingState(ServingDecision(ServingMode.DRA, "mode is set to dra", has_dra=True))
    foreign_plugins = ForeignPluginDetector(
        cast("Api", node), "n", serving=serving, clock=lambda: now[0]
    )
    for now[0] in (0.0, 60.0, 540.0):
        foreign_plugins.detect()
    assert node.gets == 1
    node.allocatable = {"enflame.com/gcu": "1"}
    now[0] = 600.0
    foreign_plugins.detect()
    assert (node.gets, foreign_plugins.problem is not None) == (2, True)
    node.allocatable = {}
    now[0] = 660.0
    foreign_plugins.detect()
    assert (node.gets, foreign_plugins.problem) == (3, None)
