"""`kubectl gcu plan` packs as the controller in the cluster does."""

from __future__ import annotations

from typing import Any

import pytest

from controller.allocator.packing.policy import Policy
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from kubectl_gcu.cluster.manifest import parse_manifest
from kubectl_gcu.cluster.to_decide import objects_to_decide
from kubectl_gcu.scheduling.packing import configured_ignored_fields, configured_packing
from kubectl_gcu.scheduling.plan import Planner
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
from tests.unit.kubectl_gcu.server import Server

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


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param("", "claim default/c, request gcu: the field score is not", id="refused"),
        pytest.param("score", "", id="ignored"),
    ],
)
def test_a_field_that_the_controller_ignores(fields: str, reason: str) -> None:
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", [device("whole", 1)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, claim("c", [request(score=1)])),
        (PODS, ignoring(fields)),
    )
    manifest = parse_manifest([single(spec(resourceClaimName="c"))], "default")
    objects, _ = objects_to_decide(server)
    [planned] = Planner(objects, manifest, lambda *_: {}).plan()
    assert planned.reason.startswith(reason)
    assert bool(planned.node) == (not reason)


@pytest.mark.parametrize(
    ("pod", "devices", "text"),
    [
        pytest.param(
            controller(),
            ["a: shared-0000-01-00-0", "a: shared-0000-01-00-0", "a: shared-0000-01-00-0"],
            "packing: nodes binpack, cards binpack",
            id="binpack",
        ),
        pytest.param(
            controller(cards="spread"),
            ["a: shared-0000-01-00-0", "a: shared-0000-02-00-0", "a: shared-0000-01-00-0"],
            "packing: nodes binpack, cards spread",
            id="over cards",
        ),
        pytest.param(
            controller("spread", "spread"),
            ["a: shared-0000-01-00-0", "b: shared-0000-03-00-0", "a: shared-0000-02-00-0"],
            "packing: nodes spread, cards spread",
            id="over nodes and cards",
        ),
    ],
)
def test_replicas_are_placed_as_the_controller_would(
    pod: Object, devices: list[str], text: str
) -> None:
    slices = [
        *pool("a", [device("shared", 1), device("shared", 2)]),
        *pool("b", [device("shared", 3), device("shared", 4)]),
    ]
    assert placed([pod], slices) == (devices, text)


def placed(pods: list[Object], slices: list[Object], *claims: Object) -> tuple[list[str], str]:
    """Where three replicas with two slices each are planned, and what is said about packing."""
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in slices),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        *((NODES, node(name)) for name in ("a", "b")),
        *((RESOURCE_CLAIMS, each) for each in claims),
        *((PODS, each) for each in pods),
    )
    objects, _ = objects_to_decide(server)
    of = spec(resourceClaimTemplateName="two")
    manifest = [template("two", TWO), workload("Deployment", "train", of, replicas=3)]

    def no_template(namespace: str, name: str) -> Object:
        raise AssertionError((namespace, name))

    planner = Planner(objects, parse_manifest(manifest, "default"), no_template)
    return [f"{each.node}: {each.devices[0][0]}" for each in planner.plan()], planner.packing


def test_spreading_keeps_replicas_apart_before_it_takes_the_emptiest() -> None:
    """After the first replica, node a is still emptier than b."""
    slices = [*pool("a", [device("shared", 1)]), *pool("b", [device("shared", 2)])]
    other = allocated("other", "b", "shared-0000-02-00-0", consumed={"slices": "3"})
    where, _ = placed([controller("spread", "spread")], slices, other)
    assert where == [f"{each}: shared-0000-0{n}-00-0" for each, n in (("a", 1), ("b", 2), ("a", 1))]
