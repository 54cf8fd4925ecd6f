"""On which nodes kube-scheduler will refuse a pod. tests/control_plane/test_predictions.py compares
with kube-scheduler's own filters; here are the words, and what counts."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cache.cache import ClusterCache
from controller.filter.predictions import Prediction, Predictions
from dra_driver.kube.api import Change
from dra_driver.kube.resources import DEVICE_CLASSES, NAMESPACES, NODES, PODS, Resource
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

    def remove(self, resource: Resource, *objects: Object) -> None:
        for each in objects:
            stored = {"uid": f"uid-{each['metadata']['name']}", "resourceVersion": "2"}
            found = each | {"metadata": each["metadata"] | stored}
            self.cache.apply(resource, Change.DELETED, found)

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
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
ALIKE = {"matchLabels": {"app": "x"}}


def labelled(found: Object, app: str = "x", namespace: str = "default") -> Object:
    labels = {"labels": {"app": app}, "namespace": namespace}
    return found | {"metadata": found["metadata"] | labels}


def near(kind: str, key: str, **more: Any) -> Object:
    """The affinity of a pod that is to be near to pods of app x, or apart from them."""
    term = {"topologyKey": key, "labelSelector": ALIKE, **more}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str = ZONE, **more: Any) -> list[Object]:
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return [rule | {"labelSelector": ALIKE} | more]


class Zones(Cluster):
    """Nodes a1 and a2 in zone a, b1 in zone b; bare has no labels. Pod `first` of app x is on a1,
    and others may be there."""

    def __init__(self, *pods: Object, first: Object | None = None) -> None:
        super().__init__()
        for name in "ab":
            self.remove(NODES, node(name))
        for name in ("a1", "a2", "b1"):
            found = node(name)
            found["metadata"]["labels"] = {HOSTNAME: name, ZONE: name[0]}
            self.put(NODES, found)
        self.put(NODES, node("bare"))
        self.put(NAMESPACES, {"metadata": {"name": "other", "labels": {"team": "t"}}})
        on_first = first or labelled(pod("first", nodeName="a1"))
        self.put(PODS, on_first, *pods)


def fitting(cluster: Cluster, asking: Object) -> str:
    """The names of the nodes that fit; those after preemption in capitals."""
    found = cluster.verdicts(asking)
    names = [name for name, verdict in found.items() if verdict == "fits"]
    names += [name.upper() for name, verdict in found.items() if verdict == "preempts"]
    return " ".join(sorted(names))


TOGETHER = labelled(pod("p", affinity=near("podAffinity", ZONE)))
APART = labelled(pod("p", affinity=near("podAntiAffinity", ZONE)))
ALONE = labelled(pod("p", affinity=near("podAntiAffinity", HOSTNAME)))
EVEN = labelled(pod("p", topologySpreadConstraints=spread()))
STRANGER = labelled(pod("p"), "y")


@pytest.mark.parametrize(
    ("cluster", "asking", "expected"),
    [
        pytest.param(Zones(), TOGETHER, "a1 a2", id="with others of a zone"),
        pytest.param(
            Zones(first=labelled(pod("first", nodeName="a1"), "y")),
            TOGETHER,
            "a1 a2 b1",
            id="the first of its kind, where the label is",
        ),
        pytest.param(
            Zones(first=labelled(pod("first", nodeName="a1"), "y")),
            labelled(pod("p", affinity=near("podAffinity", ZONE)), "y"),
            "",
            id="the first, and not of that kind",
        ),
        pytest.param(Zones(), APART, "b1 bare", id="apart by zone"),
        pytest.param(Zones(), ALONE, "a2 b1 bare", id="apart by node"),
        pytest.param(
            Zones(first=labelled(pod("first", nodeName="a1", priority=-1))),
            APART,
            "A1 b1 bare",
            id="pods of another node of the zone are not preempted",
        ),
        pytest.param(
            Zones(first=APART | {"spec": APART["spec"] | {"nodeName": "a1"}}),
            labelled(pod("q")),
            "b1 bare",
            id="kept away by a pod that is there",
        ),
        pytest.param(
            Zones(first=APART | {"spec": APART["spec"] | {"nodeName": "a1"}}),
            STRANGER,
            "a1 a2 b1 bare",
            id="a stranger to it",
        ),
        pytest.param(Zones(), EVEN, "b1", id="spread"),
        pytest.param(
            Zones(),
            labelled(pod("p", topologySpreadConstraints=spread(maxSkew=2))),
            "a1 a2 b1",
            id="spread with a larger skew",
        ),
        pytest.param(
            Zones(labelled(pod("second", nodeName="b1"))),
            EVEN,
            "a1 a2 b1",
            id="spread, and one is everywhere",
        ),
        pytest.param(
            Zones(labelled(pod("second", nodeName="b1"))),
            labelled(pod("p", topologySpreadConstraints=spread(minDomains=3))),
            "",
            id="spread over more zones than there are",
        ),
        pytest.param(
            Zones(),
            labelled(pod("p", topologySpreadConstraints=spread(), nodeSelector={ZONE: "a"})),
            "a1 a2 b1",
            id="spread over the zones that the pod selects",
        ),
        pytest.param(
            Zones(),
            labelled(
                pod(
                    "p",
                    topologySpreadConstraints=spread(nodeAffinityPolicy="Ignore"),
                    nodeSelector={ZONE: "a"},
                )
            ),
            "b1",
            id="spread over all zones, whatever the pod selects",
        ),
        pytest.param(
            Zones(first=labelled(pod("first", nodeName="a1", priority=-1))),
            EVEN,
            "A1 b1",
            id="spread, and a pod of lower priority is in the way",
        ),
    ],
)
def test_where_a_pod_may_be_because_of_others(
    cluster: Cluster, asking: Object, expected: str
) -> None:
    assert fitting(cluster, asking) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({}, "a1 a2 b1 bare", id="its own namespace"),
        pytest.param({"namespaces": ["other"]}, "a2 b1 bare", id="by name"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "t"}}}, "a2 b1 bare", id="by label"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "u"}}}, "a1 a2 b1 bare", id="none"
        ),
    ],
)
def test_pods_of_other_namespaces(term: Object, expected: str) -> None:
    """Both ways: the one that is there, and the one that comes, may have the term."""
    affinity = near("podAntiAffinity", HOSTNAME, **term)
    there = labelled(pod("first", nodeName="a1"), namespace="other")
    assert fitting(Zones(first=there), labelled(pod("p", affinity=affinity))) == expected
    there = labelled(pod("first", nodeName="a1", affinity=affinity))
    assert fitting(Zones(first=there), labelled(pod("p"), namespace="other")) == expected


def test_what_is_said_of_nodes_because_of_other_pods() -> None:
    cluster = Zones()
    assert cluster.verdicts(APART)["a2"] == "excluded by the pod's pod anti-affinity"
    assert cluster.verdicts(TOGETHER)["b1"] == "excluded by the pod's pod affinity"
    assert cluster.verdicts(EVEN)["a2"] == f"excluded by the pod's topology spread over {ZONE}"
    assert cluster.verdicts(EVEN)["bare"] == f"without label {ZONE}"
    cluster = Zones(first=APART | {"spec": APART["spec"] | {"nodeName": "a1"}})
    said = cluster.verdicts(labelled(pod("q")))["a2"]
    assert said == "where the anti-affinity of other pods keeps it away"


def test_what_was_counted_follows_pods_and_nodes() -> None:
    cluster = Zones()
    assert fitting(cluster, EVEN) == "b1"
    cluster.put(PODS, labelled(pod("second", nodeName="b1")))
    assert fitting(cluster, EVEN) == "a1 a2 b1"
    cluster.remove(PODS, labelled(pod("second", nodeName="b1")))
    assert fitting(cluster, EVEN) == "b1"
    moved = node("bare")
    moved["metadata"]["labels"] = {ZONE: "c"}
    cluster.remove(NODES, moved)
    cluster.put(NODES, moved)
    assert fitting(cluster, EVEN) == "b1 bare"
    assert fitting(cluster, APART) == "b1 bare"


def test_a_tainted_node_counts_for_spreading_where_taints_are_ignored() -> None:
    cluster = Zones()
    tainted = node("b1") | {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    tainted["metadata"]["labels"] = {HOSTNAME: "b1", ZONE: "b"}
    cluster.remove(NODES, tainted)
    cluster.put(NODES, tainted)
    honoring = labelled(pod("p", topologySpreadConstraints=spread(nodeTaintsPolicy="Honor")))
    assert fitting(cluster, EVEN) == "b1"
    assert fitting(cluster, honoring) == "a1 a2 b1"
    assert fitting(Zones(), honoring) == "b1"


def test_a_pod_that_ends_does_not_count_for_spreading_alone() -> None:
    ending = labelled(pod("first", nodeName="a1"))
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert fitting(Zones(first=ending), EVEN) == "a1 a2 b1"
    assert fitting(Zones(first=ending), ALONE) == "a2 b1 bare"


def test_whether_pods_of_one_node_decide_about_others() -> None:
    looks = Zones().predictions.looks_at_other_nodes
    assert [looks(each) for each in (APART, TOGETHER, EVEN, STRANGER)] == [True] * 3 + [False]
    keeping = Zones(first=APART | {"spec": APART["spec"] | {"nodeName": "a1"}})
    assert keeping.predictions.looks_at_other_nodes(labelled(pod("q")))


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
