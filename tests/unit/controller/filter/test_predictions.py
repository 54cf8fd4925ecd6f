"""On which nodes kube-scheduler will refuse a pod. tests/control_plane/test_predictions.py compares
with kube-scheduler's own filters; here are the words, and what counts."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cache.cache import ClusterCache
from controller.filter.predictions import Prediction, Predictions
from dra_driver.kube.api import Change
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import device_class
from tests.unit.controller.world import node, pod

RDMA = "example.com/rdma"


class Cluster:
    """Node a with two cpus and an interface, node b with four cpus, and these pods."""

    def __init__(self, *pods: Object, unconsidered: tuple[str, ...] = ()) -> None:
        self.cache = ClusterCache(Selectors())
        self.put(NODES, offering("a", cpu="2", **{RDMA: "1"}), offering("b", cpu="4"))
        self.put(PODS, *pods)
        self.predictions = Predictions(self.cache, unconsidered=unconsidered)

    def put(self, resource: Resource, *objects: Object) -> None:
        for each in objects:
            stored = {"uid": f"uid-{each['metadata']['name']}", "resourceVersion": "1"}
            found = each | {"metadata": each["metadata"] | stored}
            self.cache.apply(resource, Change.ADDED, found)

    def predicted(self, asking: Object) -> Prediction:
        numbers = self.cache.state().numbers
        return self.predictions.of(asking, numbers.set_of(self.cache.nodes))

    def verdicts(self, asking: Object) -> dict[str, str]:
        """By node: fits, preempts, or the reason."""
        found, names = self.predicted(asking), self.cache.state().numbers.names
        return {
            **dict.fromkeys(names(found.fits), "fits"),
            **dict.fromkeys(names(found.preempting), "preempts"),
            **{name: reason for reason, nodes in found.unfit for name in names(nodes)},
        }


def offering(name: str, **amounts: str) -> Object:
    found = node(name)
    found["status"]["allocatable"] |= amounts
    return found


def asking(requests: Object | None = None, port: Object | None = None, **more: Any) -> Object:
    container: Object = {"name": "main", "resources": {"requests": requests or {}}}
    if port:
        container["ports"] = [port]
    return pod(more.pop("name", "p"), containers=[container], **more)


WEB = {"hostPort": 80, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        pytest.param([], asking(), {"a": "fits", "b": "fits"}, id="nothing"),
        pytest.param(
            [], asking({"cpu": "3"}), {"a": "without free cpu", "b": "fits"}, id="too much cpu"
        ),
        pytest.param(
            [],
            asking({RDMA: "1"}),
            {"a": "fits", "b": f"without free {RDMA}"},
            id="a resource of some nodes",
        ),
        pytest.param(
            [asking({RDMA: "1"}, name="o", nodeName="a")],
            asking({RDMA: "1"}),
            {"a": f"without free {RDMA}", "b": f"without free {RDMA}"},
            id="another pod has it",
        ),
        pytest.param(
            [asking({RDMA: "1"}, name="o", nodeName="a")],
            asking({RDMA: "1"}, priority=1),
            {"a": "preempts", "b": f"without free {RDMA}"},
            id="a pod of lower priority has it",
        ),
        pytest.param(
            [asking({RDMA: "1"}, name="o", nodeName="a", priority=1)],
            asking({RDMA: "1"}, priority=1),
            {"a": f"without free {RDMA}", "b": f"without free {RDMA}"},
            id="one of the same priority has it",
        ),
        pytest.param(
            [asking(port=WEB, name="o", nodeName="a")],
            asking(port=WEB),
            {"a": "without free host port 80/TCP", "b": "fits"},
            id="a host port",
        ),
        pytest.param(
            [asking(port=WEB | {"hostIP": "10.0.0.1"}, name="o", nodeName="a")],
            asking(port=WEB | {"hostIP": "10.0.0.2"}),
            {"a": "fits", "b": "fits"},
            id="a host port at another address",
        ),
        pytest.param(
            [asking(port=WEB | {"hostIP": "10.0.0.1"}, name="o", nodeName="a")],
            asking(port=WEB),
            {"a": "without free host port 80/TCP", "b": "fits"},
            id="a host port at all addresses",
        ),
        pytest.param(
            [asking(port=WEB, name="o", nodeName="a")],
            asking(port=WEB | {"protocol": "UDP"}),
            {"a": "fits", "b": "fits"},
            id="a host port of another protocol",
        ),
    ],
)
def test_what_is_said_of_a_node(
    there: list[Object], wanted: Object, expected: dict[str, str]
) -> None:
    assert Cluster(*there).verdicts(wanted) == expected


def test_the_pod_itself_does_not_count() -> None:
    """It is counted where it was nominated."""
    nominated = asking({RDMA: "1"}, status={"nominatedNodeName": "a"})
    assert Cluster(nominated).verdicts(nominated)["a"] == "fits"


def test_a_resource_that_a_device_class_serves() -> None:
    """kube-scheduler makes a claim for it, but on nodes that have it of a device plugin."""
    cluster = Cluster(asking({RDMA: "1"}, name="o", nodeName="a"))
    serving = device_class("nic", "true")
    serving["spec"]["extendedResourceName"] = RDMA
    cluster.put(DEVICE_CLASSES, serving)
    expected = {"a": f"without free {RDMA}", "b": "fits"}
    assert cluster.verdicts(asking({RDMA: "1"})) == expected


@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "NodePorts"])
def test_a_plugin_that_is_not_considered(plugin: str) -> None:
    port = asking(port=WEB, name="o", nodeName="a")
    found = Cluster(port, unconsidered=(plugin,)).verdicts(asking({"cpu": "3"}, port=WEB))
    left = {
        "NodeResourcesFit": {"a": "without free host port 80/TCP", "b": "fits"},
        "NodePorts": {"a": "without free cpu", "b": "fits"},
    }
    assert found == left[plugin]


def test_a_node_is_counted_with_its_first_reason() -> None:
    found = Cluster().predicted(asking({"cpu": "3", RDMA: "1"}))
    reasons = {reason: nodes.bit_count() for reason, nodes in found.unfit}
    assert reasons == {"without free cpu": 1, f"without free {RDMA}": 1}
