"""Which waiting pods `kubectl gcu explain` names as more urgent."""

from __future__ import annotations

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from dra_driver.model.names import DRIVER
from kubectl_gcu.scheduling import decision
from tests.unit.controller.allocator.build import claim, request
from tests.unit.controller.world import pod
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.server import cluster


def test_more_urgent_pods_are_named() -> None:
    urgent = pod("urgent", "u", priority=5)
    server = cluster(
        *((RESOURCE_CLAIMS, claim(name)) for name in ("c", "u")),
        *((PODS, each) for each in (pod("p", "c"), urgent)),
    )
    assert (explained(server).before, explained(server, "urgent").before) == (
        ("default/urgent",),
        (),
    )


def test_more_urgent_pods_that_no_end_of_claims_serves_are_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = [request(), request("more", cls="gpu.example.com")]
    impossible = {
        "eight": claim("eight", [request(count=8)]),
        "nowhere": claim("nowhere"),
        "mixed": claim("mixed", both),
        "wrong": claim("wrong", [request(cls="part-gcu.enflame.com")]),
    }
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "cores": 120}
    opaque = {"driver": DRIVER, "parameters": parameters}
    impossible["wrong"]["spec"]["devices"]["config"] = [{"opaque": opaque}]
    elsewhere = {"nodeSelector": {"use": "nothing"}}
    server = cluster(
        *((RESOURCE_CLAIMS, each) for each in (claim("c"), claim("u"), *impossible.values())),
        (PODS, pod("p", "c")),
        (PODS, pod("urgent", "u", priority=5)),
        (PODS, pod("eight", "eight", priority=6)),
        (PODS, pod("nowhere", "nowhere", priority=6, **elsewhere)),
        *((PODS, pod(name, name, priority=6)) for name in ("mixed", "wrong")),
    )
    assert explained(server).before == ("default/urgent",)
    monkeypatch.setattr(decision, "_MOST_TRIED", 1)
    assert explained(server).before == (
        "default/nowhere",
        "default/wrong",
        "default/urgent",
    )


def test_pods_that_wait_for_another_driver_are_not_named() -> None:
    theirs = {"metadata": {"name": "gpu.example.com"}, "spec": {}}
    server = cluster(
        (DEVICE_CLASSES, theirs),
        (RESOURCE_CLAIMS, claim("c")),
        (RESOURCE_CLAIMS, claim("u", [request(cls="gpu.example.com")])),
        (PODS, pod("p", "c")),
        (PODS, pod("urgent", "u", priority=5)),
    )
    assert explained(server).before == ()
