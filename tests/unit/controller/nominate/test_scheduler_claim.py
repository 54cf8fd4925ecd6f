"""The claim that kube-scheduler makes for a pod's limits, as its own tests have it (1.37.2)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.nominate.scheduler_claim import devices_by_scheduler

GCU = "enflame.com/gcu"
PARTS = "deviceclass.resource.kubernetes.io/part-gcu.enflame.com"
CLASSES = {GCU: "gcu.enflame.com", PARTS: "part-gcu.enflame.com"}


def container(name: str, **limits: str) -> dict[str, Any]:
    """`gcu` and `parts` are limits of ours, `cpu` is another one."""
    names = {"gcu": GCU, "parts": PARTS, "cpu": "cpu"}
    return {"name": name, "resources": {"limits": {names[key]: n for key, n in limits.items()}}}


@pytest.mark.parametrize(
    ("init", "containers", "expected"),
    [
        pytest.param([], [container("a", cpu="1")], {}, id="no GCU"),
        pytest.param([], [container("a", gcu="0")], {}, id="of 0"),
        pytest.param([], [container("a", gcu="2")], {"container-0-request-0": 2}, id="two cards"),
        pytest.param(
            [],
            [container("a", cpu="1", gcu="1"), container("b", parts="3", gcu="1")],
            {
                "container-0-request-1": 1,
                "container-1-request-0": 3,
                "container-1-request-1": 1,
            },
            id="numbered among the container's resources, in their order",
        ),
        pytest.param(
            [container("i", gcu="2")],
            [container("a", gcu="1"), container("b", gcu="1")],
            {"container-1-request-0": 1, "container-2-request-0": 1},
            id="an init container that later ones cover",
        ),
        pytest.param(
            [container("i", gcu="3"), container("j", gcu="4")],
            [container("a", gcu="1")],
            {"container-1-request-0": 3, "container-2-request-0": 1},
            id="what the init container that asks for most lacks",
        ),
        pytest.param(
            [container("s", gcu="2") | {"restartPolicy": "Always"}, container("i", gcu="2")],
            [container("a", gcu="1")],
            {"container-0-request-0": 2, "container-1-request-0": 1, "container-2-request-0": 1},
            id="a sidecar before it keeps what it has",
        ),
    ],
)
def test_requests(init: list[Any], containers: list[Any], expected: dict[str, int]) -> None:
    pod = {"spec": {"initContainers": init, "containers": containers}}
    devices = devices_by_scheduler(pod, CLASSES) or {"requests": []}
    found = {each["name"]: each["exactly"]["count"] for each in devices["requests"]}
    assert found == expected
    assert list(found) == sorted(found)
