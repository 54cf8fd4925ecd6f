"""What a pod asks of its node; each row is what PodRequests of component-helpers 1.37.2 gives."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cache.pod_requests import pod_requests, resources_of
from dra_driver.model.claims.claim import Object

GIB = 2**30


def asks(name: str = "main", cpu: str = "", memory: str = "", **more: Any) -> Object:
    listed = {"cpu": cpu, "memory": memory}
    return {
        "name": name,
        "resources": {"requests": {key: text for key, text in listed.items() if text}},
        **more,
    }


def sidecar(name: str, cpu: str) -> Object:
    return asks(name, cpu, restartPolicy="Always")


def in_force(name: str, cpu: str, given: str) -> Object:
    """A container's status, or with another name than any the pod's."""
    resources = {"requests": {"cpu": cpu}}
    return {"name": name, "resources": resources, "allocatedResources": {"cpu": given}}


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
ONE = [asks(cpu="1")]
RESIZED = in_force("main", "3", "2")
POD_LEVEL = {"requests": {"cpu": "5"}}

CASES: dict[str, tuple[Object, Object, tuple[str, int]]] = {
    "nothing": ({"containers": [{"name": "main"}]}, {}, ("0", 0)),
    "the containers' sum": (
        {"containers": [asks("a", "1500m", "1Gi"), asks("b", "1", "1Gi")]},
        {},
        ("2.5", 2 * GIB),
    ),
    "an init container that asks for less": (
        {"containers": ONE, "initContainers": [asks("i", "500m")]},
        {},
        ("1", 0),
    ),
    "the greatest of the init containers, resource by resource": (
        {
            "containers": [asks(cpu="1", memory="4Gi")],
            "initContainers": [asks("i", "3", "1Gi"), asks("j", "2", "2Gi")],
        },
        {},
        ("3", 4 * GIB),
    ),
    "a sidecar beside the containers": (
        {"containers": ONE, "initContainers": [sidecar("s", "2")]},
        {},
        ("3", 0),
    ),
    "an init container beside the sidecars before it": (
        {
            "containers": ONE,
            "initContainers": [sidecar("s", "2"), asks("i", "4"), sidecar("late", "1")],
        },
        {},
        ("6", 0),
    ),
    "several sidecars beside an init container": (
        {
            "containers": ONE,
            "initContainers": [sidecar("s", "1"), sidecar("t", "1"), asks("i", "7")],
        },
        {},
        ("9", 0),
    ),
    "overhead": ({"containers": ONE, "overhead": {"cpu": "250m"}}, {}, ("1.25", 0)),
    "pod-level cpu in place of the containers', their memory": (
        {"containers": [asks(cpu="1", memory="1Gi")], "resources": POD_LEVEL},
        {},
        ("5", GIB),
    ),
    "pod-level, and overhead": (
        {"containers": ONE, "resources": POD_LEVEL, "overhead": {"cpu": "1"}},
        {},
        ("6", 0),
    ),
    "pod-level limits alone": (
        {"containers": ONE, "resources": {"limits": {"cpu": "9"}}},
        {},
        ("1", 0),
    ),
    "a resize under way": ({"containers": ONE}, {"containerStatuses": [RESIZED]}, ("3", 0)),
    "a resize that is given already": (
        {"containers": ONE},
        {"containerStatuses": [in_force("main", "1", "4")]},
        ("4", 0),
    ),
    "a resize that will never be": (
        {"containers": [asks(cpu="8")]},
        {"containerStatuses": [RESIZED], "conditions": INFEASIBLE},
        ("3", 0),
    ),
    "a resize that will never be, and nothing was granted": (
        {"containers": ONE},
        {"containerStatuses": [{"name": "main"}], "conditions": INFEASIBLE},
        ("0", 0),
    ),
    "a resize of a sidecar": (
        {"containers": ONE, "initContainers": [sidecar("s", "1")]},
        {"initContainerStatuses": [in_force("s", "2", "2")]},
        ("3", 0),
    ),
    "a resize of an init container": (
        {"containers": ONE, "initContainers": [asks("i", "1")]},
        {"initContainerStatuses": [in_force("i", "7", "7")]},
        ("7", 0),
    ),
    "more is granted than is asked for": (
        {"containers": ONE},
        {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "7"}}]},
        ("7", 0),
    ),
    "one container grows while another one shrinks": (
        {"containers": [asks("a", "3"), asks("b", "1")]},
        {"containerStatuses": [in_force("a", "1", "1"), in_force("b", "3", "3")]},
        ("4", 0),
    ),
    "the pod's status has the sums": (
        {"containers": [asks("a", "1"), asks("b", "1")]},
        {
            "allocatedResources": {"cpu": "5"},
            "resources": {"requests": {"cpu": "3"}},
            "containerStatuses": [in_force("a", "9", "9")],
        },
        ("5", 0),
    ),
    "a pod-level resize": (
        {"containers": ONE, "resources": POD_LEVEL},
        {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "7"}},
        ("7", 0),
    ),
}


@pytest.mark.parametrize(("spec", "status", "asked"), CASES.values(), ids=CASES)
def test_requests(spec: Object, status: Object, asked: tuple[str, int]) -> None:
    cpu, memory = asked
    expected = {"cpu": int(float(cpu) * 1000), "memory": memory, "pods": 1}
    found = dict(pod_requests({"spec": spec, "status": status}))
    assert found == {name: amount for name, amount in expected.items() if amount}


def test_units() -> None:
    listed = {"cpu": "250m", "memory": "1Ki", "pods": "110", "example.com/x": "0", "tiny": "1n"}
    assert resources_of(listed) == {"cpu": 250, "memory": 1024, "pods": 110, "tiny": 1}


def test_every_resource_counts() -> None:
    listed = {"ephemeral-storage": "1Gi", "hugepages-2Mi": "2"}
    asked = [listed, listed | {"example.com/rdma": "1"}]
    containers = [{"name": "x", "resources": {"requests": each}} for each in asked]
    assert dict(pod_requests({"spec": {"containers": containers}})) == {
        "ephemeral-storage": 2 * GIB,
        "hugepages-2Mi": 4,
        "example.com/rdma": 1,
        "pods": 1,
    }


def test_what_is_no_amount_that_we_can_read_is_more_than_any_node_has() -> None:
    asked = dict(pod_requests({"spec": {"containers": [asks(cpu="1e120")]}}))
    assert asked["cpu"] > resources_of({"cpu": "1000k"})["cpu"]
