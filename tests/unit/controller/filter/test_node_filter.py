"""The index selects what a look at each node selects."""

from __future__ import annotations

import random

import pytest

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache.nodes import selector_matches
from controller.filter.node_filter import NodeFilter
from dra_driver.model.claims.claim import Object
from dra_driver.selector.allowance import Allowance
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
def test_like_an_examination_of_each_node(seed: int) -> None:
    draw = random.Random(seed)
    known = some_nodes(draw)
    numbers = NodeNumbers()
    index = Nodes(known, numbers).filter
    for _ in range(50):
        selector = {"nodeSelectorTerms": [term(draw) for _ in range(draw.randint(0, 3))]}
        expected = {name for name, each in known.items() if selector_matches(selector, each)}
        assert set(numbers.names(index.matching(selector))) == expected, selector


class Nodes:
    """A lister of these nodes."""

    def __init__(self, nodes: dict[str, Object], numbers: NodeNumbers | None = None) -> None:
        self.nodes = nodes
        self.nodes_version = 1
        self.numbers = numbers or NodeNumbers()
        self.filter = NodeFilter(self, self.numbers, Allowance())

    def names(self, nodes: NodeSet) -> set[str]:
        return set(self.numbers.names(nodes))


def test_a_node_that_changed_is_examined_again() -> None:
    known = {"a": labelled("a", zone="x"), "b": labelled("b", zone="y")}
    lister = Nodes(known)
    in_x = {"key": "zone", "operator": "In", "values": ["x"]}
    selector: Object = {"nodeSelectorTerms": [{"matchExpressions": [in_x]}]}
    wanting = pod("p", nodeSelector={"zone": "x"})

    def found() -> tuple[set[str], set[str]]:
        by_volume = lister.filter.feasible_nodes(pod("q"), [(selector, "no")], {})
        by_label = lister.filter.feasible_nodes(wanting, (), {})
        return lister.names(by_volume.feasible), lister.names(by_label.feasible)

    assert found() == ({"a"}, {"a"})
    known["b"] = labelled("b", zone="x")
    assert found() == ({"a"}, {"a"})  # the version is the same
    lister.nodes_version = 2
    assert found() == ({"a", "b"}, {"a", "b"})


def test_excluded_nodes_are_left_out_and_counted() -> None:
    lister = Nodes({name: node(name) for name in "abcd"})
    nominated = pod("p")
    nominated["status"] = {"nominatedNodeName": "c"}
    excluded = {"a": "refused lately", "b": "reserved for another", "gone": "refused lately"}
    found = lister.filter.feasible_nodes(nominated, (), excluded)
    assert (lister.names(found.feasible), lister.names(found.nominated)) == ({"c", "d"}, {"c"})
    assert found.reason == "4 nodes: 1 refused lately, 1 reserved for another"
    found = lister.filter.feasible_nodes(nominated, (), {"c": "refused lately"})
    assert (lister.names(found.feasible), found.nominated) == ({"a", "b", "d"}, 0)


def test_a_pod_that_is_bound_to_no_node_of_the_cluster_fits_nowhere() -> None:
    """Whoever may create pods can name such a node, and a new one with each pod."""
    lister = Nodes({"a": node("a")})
    found = lister.filter.feasible_nodes(pod("p", nodeName="nowhere"), (), {})
    assert found.feasible == 0
    assert found.reason == "it is bound to nowhere, and there is no such node"
    assert "nowhere" not in lister.numbers
    found = lister.filter.feasible_nodes(pod("p", nodeName="a"), (), {})
    assert lister.names(found.feasible) == {"a"}


def test_nodes_with_new_numbers_are_found() -> None:
    known = {name: node(name) for name in ("x", "z")}
    numbers = NodeNumbers()
    numbers.set_of([f"gone-{number}" for number in range(5_000)])
    lister = Nodes(known, numbers)
    everywhere = lister.filter.feasible_nodes(pod("p"), (), {}).feasible
    assert lister.names(everywhere) == {"x", "z"}
    numbers.trim(known.keys())
    assert numbers.epoch == 1
    everywhere = lister.filter.feasible_nodes(pod("p"), (), {}).feasible
    assert lister.names(everywhere) == {"x", "z"}
    by_name = {"key": "metadata.name", "operator": "In", "values": ["z"]}
    matching = lister.filter.matching({"nodeSelectorTerms": [{"matchFields": [by_name]}]})
    assert lister.names(matching) == {"z"}
