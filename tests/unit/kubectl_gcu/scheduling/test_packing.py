"""`kubectl gcu plan` packs as the controller in the cluster does."""

from __future__ import annotations

from typing import Any

import pytest

from controller.allocator.packing.policy import Policy
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import CLASS_SHARED
from kubectl_gcu.scheduling.packing import configured_ignored_fields, configured_packing
from tests.unit.controller.allocator.build import (
    CLASSES,
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.world import node
from tests.unit.kubectl_gcu.manifests import TWO, single, spec, template, workload
from tests.unit.kubectl_gcu.scheduling.test_plan import plan
from tests.unit.kubectl_gcu.server import Server, cluster

BINPACK, SPREAD = Packing.BINPACK, Packing.SPREAD


def controller(
    nodes: str = "binpack", cards: str = "binpack", *, made: str = "2026-11-25", **more: Any
) -> Object:
    labels = {
        "app.kubernetes.io/name": "gcu-dra-driver",
        "app.kubernetes.io/component": "controller",
    }
    names = ("GCU_PACK_NODES", nodes), ("GCU_PACK_CARDS", cards)
    env: list[Object] = [{"name": name, "value": value} for name, value in names if value]
    env.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    name = f"controller-{nodes}-{cards}"
    metadata = {"namespace": "gcu-dra-driver", "name": name, "labels": labels}
    return {
        "metadata": metadata | {"creationTimestamp": f"{made}T00:00:00Z"} | more,
        "spec": {"containers": [{"name": "controller", "env": env}]},
    }


@pytest.mark.parametrize(
    ("pods", "packing"),
    [
        pytest.param([], None, id="no controller"),
        pytest.param([controller("spread")], Policy(SPREAD, BINPACK), id="nodes"),
        pytest.param([controller(cards="spread")], Policy(BINPACK, SPREAD), id="cards"),
        pytest.param([controller("", "")], None, id="its environment does not say it"),
        pytest.param([controller("evenly")], None, id="a value of a later version"),
        pytest.param(
            [controller("spread", made="2026-11-26"), controller()],
            Policy(SPREAD, BINPACK),
            id="the newest",
        ),
        pytest.param(
            [controller("spread", deletionTimestamp="2026-11-26T00:00:00Z"), controller()],
            Policy(BINPACK, BINPACK),
            id="not one that ends",
        ),
        pytest.param(
            [controller("spread") | {"status": {"phase": "Failed"}}], None, id="not one that ended"
        ),
        pytest.param([controller("spread", labels={"app": "other"})], None, id="another program"),
    ],
)
def test_what_the_controllers_pod_says(pods: list[Object], packing: Policy | None) -> None:
    assert configured_packing(pods) == packing


def ignoring(fields: str) -> Object:
    """A pod of a controller that ignores these fields of claims."""
    found = controller()
    found["spec"]["containers"][0]["env"] += [{"name": "GCU_IGNORED_CLAIM_FIELDS", "value": fields}]
    return found


@pytest.mark.parametrize(
    ("pods", "ignored"),
    [
        pytest.param([], set(), id="no controller"),
        pytest.param([controller()], set(), id="an older controller"),
        pytest.param([ignoring("")], set(), id="none"),
        pytest.param([ignoring("score,weight")], {"score", "weight"}, id="two"),
    ],
)
def test_which_fields_of_claims_it_ignores(pods: list[Object], ignored: set[str]) -> None:
    assert configured_ignored_fields(pods) == ignored


def test_a_field_that_the_controller_ignores() -> None:
    asked = claim("c", [request(cls=CLASS_SHARED, score=1)])
    server = cluster((RESOURCE_CLAIMS, asked), (PODS, ignoring("score")))
    [planned], _ = plan(single(spec(resourceClaimName="c")), server=server)
    assert planned.startswith("pod default/p: node b: shared-0000-02-00-0")


def test_replicas_are_placed_as_the_controller_would() -> None:
    """Spreading keeps them apart before it takes the emptiest: after the first one, node a is still
    emptier than b."""
    other = allocated("other", "b", "shared-0000-02-00-0", consumed={"slices": "3"})
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", [device("shared", 1)])),
        *((RESOURCE_SLICES, each) for each in pool("b", [device("shared", 2)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        *((NODES, node(name)) for name in "ab"),
        (RESOURCE_CLAIMS, other),
        (PODS, controller("spread", "spread")),
    )
    train = workload("Deployment", "train", spec(resourceClaimTemplateName="two"), replicas=3)
    planned, planner = plan(template("two", TWO), train, server=server)
    assert [each.split()[3] for each in planned] == ["a:", "b:", "a:"]
    assert planner.packing == "packing: nodes spread, cards spread"
