"""What agents told on Nodes goes with the driver, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from dra_driver.kube.api import Api, Listing, PatchType
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.resources import NODES, Resource
from dra_driver.model.claim import Object
from dra_driver.model.errors import GcuError
from dra_driver.uninstall.answers import Answers
from dra_driver.uninstall.cleanup import clean, clear_up
from dra_driver.uninstall.sweeps import Sweeps

OURS = {"manager": "gcu-dra-agent", "operation": "Apply", "subresource": "status"}


def node(name: str, *managers: Object) -> Object:
    return {"metadata": {"name": name, "managedFields": list(managers)}}


class Nodes:
    """The port `Api` with nodes in place of a server; `error` is the answer to a write."""

    def __init__(self, *nodes: Object, error: GcuError | None = None) -> None:
        self._nodes = nodes
        self._error = error
        self.applied: list[Object] = []

    def list(self, resource: Resource) -> Listing:
        assert resource == NODES
        return Listing(self._nodes, "1")

    def patch(self, resource: Resource, name: str, body: Object, **more: Any) -> None:
        assert (resource, name) == (NODES, body["metadata"]["name"])
        assert more["patch_type"] is PatchType.APPLY
        assert (more["subresource"], more["field_manager"]) == ("status", OURS["manager"])
        self.applied.append(body)
        if self._error is not None:
            raise self._error


def test_nothing_is_applied_in_the_name_of_agents_that_told_something() -> None:
    nodes = Nodes(
        node("told", {"manager": "kubelet", "operation": "Update"}, OURS),
        node("by others", {**OURS, "manager": "somebody"}),
        node("otherwise", {**OURS, "operation": "Update"}),
        node("elsewhere", {**OURS, "subresource": ""}),
        {"metadata": {"name": "bare"}},
    )
    clean(cast("Api", nodes))
    assert nodes.applied == [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "told"}},
    ]


class Sweep:
    """The port `Sweeps`: `ask` is called when it is asked for the answers."""

    def __init__(self, ask: Callable[[], Answers]) -> None:
        self._ask = ask

    def answers(self, patience: float) -> Answers:
        assert patience == 60
        return self._ask()


def test_a_node_keeps_its_label_until_it_is_swept() -> None:
    nodes = Nodes(node("told", OURS))
    answers = Answers({"told": ""}, {})

    def ask() -> Answers:
        assert nodes.applied == []
        return answers

    assert clear_up(cast("Api", nodes), cast("Sweeps", Sweep(ask)), 60) is answers
    assert len(nodes.applied) == 1


def test_without_an_answer_nodes_are_cleaned_all_the_same() -> None:
    nodes = Nodes(node("told", OURS))

    def ask() -> Answers:
        raise Unavailable("no answer")

    with pytest.raises(Unavailable):
        clear_up(cast("Api", nodes), cast("Sweeps", Sweep(ask)), 60)
    assert len(nodes.applied) == 1


def test_a_node_that_was_deleted_meanwhile_holds_up_no_other() -> None:
    nodes = Nodes(node("gone", OURS), node("also gone", OURS), error=NotFound("node gone"))
    clean(cast("Api", nodes))
    assert len(nodes.applied) == 2


def test_what_stays_is_told() -> None:
    with pytest.raises(Unavailable):
        clean(cast("Api", Nodes(node("told", OURS), error=Unavailable("no answer"))))
