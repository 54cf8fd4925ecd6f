"""Waiting for what the nodes answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from dra_driver.kube.api import Api, Listing
from dra_driver.kube.resources import DAEMON_SETS, NODES, PODS, Resource
from dra_driver.model.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.uninstall.sweeps import Sweeps
from tests.unit.uninstall.test_answers import ended, pod


class Cluster:
    """The port `Api`, and a clock that goes on when somebody waits; `then` is called each time."""

    def __init__(self, *pods: Object, expected: int | None = 2) -> None:
        self.pods = list(pods)
        self.expected = expected
        self.ready = {"a": True, "b": True}
        self.now = 100.0
        self.node_lists = 0
        self.then: Callable[[], object] = lambda: None
        self.sweeps = Sweeps(
            cast("Api", self),
            namespace="gcu-system",
            name="gcu-sweep",
            wait=self._wait,
            clock=lambda: self.now,
        )

    def get(self, resource: Resource, name: str, *, namespace: str) -> Object:
        assert (resource, name, namespace) == (DAEMON_SETS, "gcu-sweep", "gcu-system")
        known = {"observedGeneration": 1, "desiredNumberScheduled": self.expected}
        return {
            "metadata": {"uid": "uid-sweep", "generation": 1},
            "spec": {"selector": {"matchLabels": {"a": "b", "c": "d"}}},
            "status": known if self.expected is not None else {},
        }

    def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> Listing:
        if resource == PODS:
            assert (namespace, label_selector) == ("gcu-system", "a=b,c=d")
            return Listing(tuple(self.pods), "1")
        assert resource == NODES
        self.node_lists += 1
        nodes = [self._node(name, ready) for name, ready in self.ready.items()]
        return Listing(tuple(nodes), "1")

    def _node(self, name: str, ready: bool) -> Object:
        conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
        return {"metadata": {"name": name}, "status": {"conditions": conditions}}

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        self.then()
        return False


def test_all_answers_are_waited_for() -> None:
    cluster = Cluster(ended("a"), pod("b"))
    answers = iter([pod("b"), ended("b")])
    cluster.then = lambda: cluster.pods.__setitem__(1, next(answers))
    assert cluster.sweeps.answers(60).left == {"a": "", "b": ""}
    assert cluster.now == 102


def test_pods_of_others_are_none_of_it() -> None:
    """One of a DaemonSet of that name before this one, which ends."""
    old = ended("b")
    old["metadata"]["ownerReferences"] = [{"uid": "uid-older"}]
    cluster = Cluster(ended("a"), old)
    assert cluster.sweeps.answers(5).missing == 1
    assert cluster.now == 105


def test_one_that_is_down_is_not_waited_for() -> None:
    cluster = Cluster(ended("a"), pod("b"))
    cluster.ready["b"] = False
    assert cluster.sweeps.answers(60).down == {"b"}
    assert cluster.now == 100


def test_patience_ends_and_nodes_are_seldom_listed() -> None:
    cluster = Cluster(ended("a"), pod("b"))
    assert cluster.sweeps.answers(60).awaited.keys() == {"b"}
    assert cluster.now == 160
    assert cluster.node_lists == 7


def test_pods_are_waited_for_before_they_are_known() -> None:
    cluster = Cluster(expected=None)

    def begin() -> None:
        cluster.expected, cluster.pods = 1, [ended("a")]

    cluster.then = begin
    assert cluster.sweeps.answers(60).left == {"a": ""}


def test_a_daemon_set_that_nobody_looks_at_is_told() -> None:
    with pytest.raises(Refused, match="DaemonSet gcu-system/gcu-sweep"):
        Cluster(expected=None).sweeps.answers(5)


def test_where_no_agent_could_run_nothing_is_waited_for() -> None:
    cluster = Cluster(expected=0)
    assert str(cluster.sweeps.answers(60)) == "Nothing of the driver is left on 0 nodes."
    assert cluster.now == 100
