"""The index selects what a look at each node selects."""

from __future__ import annotations

import random

import pytest

from controller.allocator.node_selector import selector_matches
from controller.filter.feasible_nodes import NodeFilter, feasible_nodes
from controller.filter.label_index import LabelIndex
from dra_driver.model.claim import Object
from tests.unit.controller.world import node, pod

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like")


def labelled(name: str, **labels: str) -> Object:
    made = node(name)
    made["metadata"]["labels"] = labels
    return made


def some_nodes(draw: random.Random) -> dict[str, Object]:
    found = {}
    for number in range(12):
        labels = {key: str(draw.randrange(4)) for key in ("zone", "size") if draw.random() < 0.8}
        found[f"n{number}"] = labelled(f"n{number}", **labels)
    found["bare"] = node("bare")
    return found


def requirement(draw: random.Random, *keys: str) -> Object:
    values = [draw.choice(("0", "1", "2", "n3", "x")) for _ in range(draw.randint(1, 3))]
    return {"key": draw.choice(keys), "operator": draw.choice(OPERATORS), "values": values}


def term(draw: random.Random) -> Object:
    labels = [requirement(draw, "zone", "size", "rack") for _ in range(draw.randint(0, 2))]
    fields = [requirement(draw, "metadata.name", "metadata.uid")] if draw.random() < 0.4 else []
    return {"matchExpressions": labels, "matchFields": fields}


@pytest.mark.parametrize("seed", range(20))
def test_as_a_look_at_each_node(seed: int) -> None:
    draw = random.Random(seed)
    known = some_nodes(draw)
    index = LabelIndex(known)
    for _ in range(50):
        selector = {"nodeSelectorTerms": [term(draw) for _ in range(draw.randint(0, 3))]}
        expected = {name for name, each in known.items() if selector_matches(selector, each)}
        assert index.matching(selector) == expected, selector


def test_a_node_that_changed_is_looked_at_again() -> None:
    known = {"a": labelled("a", zone="x"), "b": labelled("b", zone="y")}
    version = 1
    fits = NodeFilter(known, lambda: version)
    in_x = {"key": "zone", "operator": "In", "values": ["x"]}
    selector: Object = {"nodeSelectorTerms": [{"matchExpressions": [in_x]}]}
    wanting = pod("p", nodeSelector={"zone": "x"})

    def found() -> tuple[set[str], set[str]]:
        where = feasible_nodes(pod("q"), fits, (), excluded={}, volumes=[selector])
        return set(where.fitting), set(feasible_nodes(wanting, fits, (), excluded={}).fitting)

    assert found() == ({"a"}, {"a"})
    known["b"] = labelled("b", zone="x")
    assert found() == ({"a"}, {"a"})  # nobody has told yet
    version = 2
    assert found() == ({"a", "b"}, {"a", "b"})
