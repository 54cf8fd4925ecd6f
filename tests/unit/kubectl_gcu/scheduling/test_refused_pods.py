"""What the controller refuses or excludes for a reason that is not about devices, `explain` and
`plan` do, too."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.kube.errors import Forbidden
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from kubectl_gcu.scheduling.explanation import lines
from tests.unit.controller.allocator.build import CLASSES, claim, device, pool, request
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.manifests import single
from tests.unit.kubectl_gcu.scheduling.test_plan import plan
from tests.unit.kubectl_gcu.server import CONTROLLER, Server, cluster

SLICE = request(cls="shared-gcu.enflame.com")
SOME_NOT_ALL = "containers 'main' and 'side' of pod default/p share some GCU requests but not all"


def sharing() -> Object:
    """Of its two claims one container uses both, and the other one of them."""
    found = pod("p", "c", "d")
    side = {"name": "side", "resources": {"claims": [{"name": "c"}]}}
    found["spec"]["containers"].append(side)
    return found


def test_containers_that_share_some_requests_and_not_all() -> None:
    claims = [(RESOURCE_CLAIMS, claim(name, [SLICE])) for name in "cd"]
    found = explained(cluster(*claims, (PODS, sharing())))
    assert found.verdict is not None
    assert found.verdict.node == ""
    assert found.verdict.reason.startswith(SOME_NOT_ALL)
    assert found.step.who.startswith("the pod's author")
    [planned], _ = plan(single(sharing()["spec"]), server=cluster(*claims))
    assert planned.startswith(f"pod default/p: does not fit: {SOME_NOT_ALL}")


def with_volume(node_of_volume: str) -> tuple[tuple[Resource, Object], ...]:
    """A pod for one slice, whose volume is on that node; node b has a free slice."""
    user = pod("p", "c", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    key = "kubernetes.io/hostname"
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [node_of_volume]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    bound = {"metadata": {"namespace": "default", "name": "data"}, "spec": {"volumeName": "pv"}}
    named = node("b")
    named["metadata"]["labels"] = {key: "b"}
    return (
        (NODES, named),
        (RESOURCE_CLAIMS, claim("c", [SLICE])),
        (PERSISTENT_VOLUME_CLAIMS, bound),
        (PERSISTENT_VOLUMES, {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": affinity}}),
        (PODS, user),
    )


@pytest.mark.parametrize(("where", "served"), [("b", "b"), ("elsewhere", "")])
def test_a_volume_that_is_on_one_node(where: str, served: str) -> None:
    found = explained(cluster(*with_volume(where)))
    assert found.verdict is not None
    assert found.verdict.node == served
    assert ("not where the pod's volumes are" in found.verdict.reason) == (served == "")


def test_a_user_who_may_not_read_volumes_learns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = cluster(*with_volume("elsewhere"))
    get = server.get

    def restricted(resource: Resource, name: str, *, namespace: str = "") -> Object:
        if resource is PERSISTENT_VOLUMES:
            raise Forbidden("no", status=403)
        found: Object = get(resource, name, namespace=namespace)
        return found

    monkeypatch.setattr(server, "get", restricted)
    found = explained(server)
    assert found.verdict is not None
    assert found.verdict.node == "b"
    assert found.missing.startswith("you may not get the pod's persistentvolumeclaims and their ")


@pytest.mark.parametrize("pods", [[], [CONTROLLER | {"status": {}}]], ids=["none", "not ready"])
def test_a_device_that_fits_while_no_controller_runs(pods: list[Object]) -> None:
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", [device("whole", 1)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, claim("c")),
        *((PODS, each) for each in (pod("p", "c"), *pods)),
    )
    assert list(lines(explained(server)))[2:] == [
        ("  next:   the pod's author or an administrator: the end of other claims would not help"),
        ("  why:    no pod of the controller is ready, and without it nothing is allocated"),
        (
            "  help:   node a has what it asks for; kubectl gcu doctor says what is wrong with the "
            "controller"
        ),
    ]
