"""What a pod asks of its node; each row is what PodRequests of component-helpers 1.36.3 gives."""

from __future__ import annotations

from typing import Any

import pytest

from controller.allocator.capacity import NANO
from controller.cache.node_resources import Resources, pod_requests
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
    "a resize of a sidecar": (
        {"containers": ONE, "initContainers": [sidecar("s", "1")]},
        {"initContainerStatuses": [in_force("s", "2", "2")]},
        ("3", 0),
    ),
    "not of an init container": (
        {"containers": ONE, "initContainers": [asks("i", "1")]},
        {"initContainerStatuses": [in_force("i", "7", "7")]},
        ("1", 0),
    ),
    "a status without resources": (
        {"containers": ONE},
        {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "7"}}]},
        ("1", 0),
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
    expected = Resources.of({"cpu": cpu, "memory": str(memory), "pods": "1"})
    assert pod_requests({"spec": spec, "status": status}) == expected


def test_units() -> None:
    listed = {"cpu": "250m", "memory": "1Ki", "pods": "110", "ephemeral-storage": "1Gi"}
    assert Resources.of(listed) == (NANO // 4, 1024 * NANO, 110 * NANO)


def test_what_is_no_amount_that_we_can_read_fits_nowhere() -> None:
    asked = pod_requests({"spec": {"containers": [asks(cpu="1e120")]}})
    assert not Resources.of({"cpu": "1000k", "pods": "1"}).fits(asked)


@pytest.mark.parametrize(
    ("left", "asked", "taken"),
    [
        pytest.param(Resources(1, 1, 1), Resources(1, 1, 1), True, id="just enough"),
        pytest.param(Resources(1, 9, 9), Resources(2, 1, 1), False, id="cpu"),
        pytest.param(Resources(9, 1, 9), Resources(1, 2, 1), False, id="memory"),
        pytest.param(Resources(9, 9, 0), Resources(1, 1, 1), False, id="pods"),
        pytest.param(
            Resources(-1, -1, 1), Resources(0, 0, 1), True, id="nothing of what is overdrawn"
        ),
    ],
)
def test_room(left: Resources, asked: Resources, taken: bool) -> None:
    assert left.fits(asked) is taken
