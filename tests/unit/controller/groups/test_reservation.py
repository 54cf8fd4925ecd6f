"""Nodes that are reserved for a group: few, and those with the least allocated."""

from __future__ import annotations

import pytest

from controller.groups.request import GroupRequest
from tests.unit.controller.groups.test_search import Fleet, cards, nodes_of


@pytest.mark.parametrize(
    ("held", "sizes", "nodes"),
    [
        pytest.param([2], [2, 2], ("b", "c"), id="not the node with most allocated"),
        pytest.param([], [1, 1], ("a",), id="no more than it needs"),
        pytest.param([2, 2, 2, 1], [2, 2, 2, 1], ("a", "b", "c", "d"), id="though all is held"),
        pytest.param([], [3], (), id="not even an empty node could serve it"),
    ],
)
def test_nodes_for(held: list[int], sizes: list[int], nodes: tuple[str, ...]) -> None:
    fleet = Fleet({"a": 2, "b": 2, "c": 2, "d": 1})
    for each in held:
        found = fleet.search(fleet.members(*cards(each)))
        nodes_of(found)
        found.keep()
    members = fleet.members(*cards(*sizes))
    before = fleet.free()
    assert fleet.reserver.nodes_for(GroupRequest(members, len(members))) == nodes
    assert fleet.free() == before
