"""The index selects what a look at each node selects."""

from __future__ import annotations

import random

import pytest

from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache.nodes import selector_matches
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
    numbers = NodeNumbers()
    index = LabelIndex(known, numbers)
    for _ in range(50):
        selector = {"nodeSelectorTerms": [term(draw) for _ in range(draw.randint(0, 3))]}
        expected = {name for name, each in known.items() if selector_matches(selector, each)}
        assert set(numbers.names(index.matching(selector))) == expected, selector


def names(fits: NodeFilter, nodes: NodeSet) -> set[str]:
    return set(fits.numbers.names(nodes))


def test_a_node_that_changed_is_looked_at_again() -> None:
    known = {"a": labelled("a", zone="x"), "b": labelled("b", zone="y")}
    version = 1
    fits = NodeFilter(known, NodeNumbers(), lambda: version)
    in_x = {"key": "zone", "operator": "In", "values": ["x"]}
    selector: Object = {"nodeSelectorTerms": [{"matchExpressions": [in_x]}]}
    wanting = pod("p", nodeSelector={"zone": "x"})

    def found() -> tuple[set[str], set[str]]:
        where = feasible_nodes(pod("q"), fits, (), excluded={}, volumes=[selector])
        wanted = feasible_nodes(wanting, fits, (), excluded={})
        return names(fits, where.fitting), names(fits, wanted.fitting)

    assert found() == ({"a"}, {"a"})
    known["b"] = labelled("b", zone="x")
    assert found() == ({"a"}, {"a"})  # nobody has told yet
    version = 2
    assert found() == ({"a", "b"}, {"a", "b"})


def test_excluded_nodes_are_left_out_and_counted() -> None:
    known = {name: node(name) for name in "abcd"}
    fits = NodeFilter(known, NodeNumbers(), lambda: 1)
    nominated = pod("p")
    nominated["status"] = {"nominatedNodeName": "c"}
    excluded = {"a": "refused lately", "b": "kept for another", "gone": "refused lately"}
    where = feasible_nodes(nominated, fits, (), excluded=excluded)
    assert (names(fits, where.fitting), names(fits, where.preferred)) == ({"c", "d"}, {"c"})
    assert where.reason == "4 nodes: 1 kept for another, 1 refused lately"
    where = feasible_nodes(nominated, fits, (), excluded={"c": "refused lately"})
    assert (names(fits, where.fitting), where.preferred) == ({"a", "b", "d"}, 0)


def test_nodes_that_are_numbered_anew_are_found_again() -> None:
    known = {name: node(name) for name in ("x", "z")}
    numbers = NodeNumbers()
    numbers.set_of([f"gone-{number}" for number in range(5_000)])
    fits = NodeFilter(known, numbers, lambda: 1)
    assert names(fits, fits.of(pod("p")).fitting) == {"x", "z"}
    numbers.trim(known.keys())
    assert numbers.epoch == 1
    assert names(fits, fits.of(pod("p")).fitting) == {"x", "z"}
    by_name = {"key": "metadata.name", "operator": "In", "values": ["z"]}
    assert names(fits, fits.matching({"nodeSelectorTerms": [{"matchFields": [by_name]}]})) == {"z"}
