"""Which new pods are held back until their node is named."""

from __future__ import annotations

from typing import Any

import pytest

from controller.webhook.gate import NominationGate
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DEVICE_CLASSES, SCHEDULING_GATE
from tests.control_plane.objects import pod_with
from tests.fake_api.api import FakeApi
from tests.unit.controller.allocator.build import allocated, claim, first_available, request

OTHER = "gpu.example.com"
ON_ONE_NODE: Object = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}


class World:
    """`time` is of its clock, in seconds."""

    def __init__(self, *, leads: bool = True, schedulers: frozenset[str] = frozenset()) -> None:
        self.api = FakeApi()
        self.time = 0.0
        self.leads = leads
        self._gate = NominationGate(
            self.api, DEVICE_CLASSES, schedulers, lambda: self.leads, lambda: self.time
        )

    def template(self, *requests: Object) -> None:
        """The template `t`, or another one of that name."""
        spec = claim("t", requests)["spec"]
        metadata = {"namespace": "default", "name": "t"}
        self.api.put(RESOURCE_CLAIM_TEMPLATES, {"metadata": metadata, "spec": {"spec": spec}})

    def gates(self, *claims: str, template: str = "", **spec: Any) -> bool:
        """Whether a new pod with these claims is gated."""
        patch = self._gate(pod_with("p", "default", *claims, template=template, **spec))
        return bool(patch) and patch[0]["value"][-1] == {"name": SCHEDULING_GATE}


@pytest.mark.parametrize(
    ("made", "gated"),
    [
        pytest.param(claim("c"), True, id="ours"),
        pytest.param(claim("c", [request(cls=OTHER)]), False, id="another driver's"),
        pytest.param(claim("c", [request(cls=OTHER), request("gcu")]), True, id="mixed"),
        pytest.param(
            claim("c", [first_available("r", request(cls=OTHER), request())]), True, id="maybe ours"
        ),
        pytest.param(claim("c", [request(adminAccess=True)]), False, id="an administrator's"),
        pytest.param(allocated("c", "a", "whole-0000-00-00-0"), False, id="allocated"),
        pytest.param(None, False, id="not there yet"),
    ],
)
def test_a_claim(made: Object | None, gated: bool) -> None:
    world = World()
    if made is not None:
        world.api.put(RESOURCE_CLAIMS, made)
    assert world.gates("c") is gated


@pytest.mark.parametrize(
    ("limit", "gated"),
    [
        pytest.param("enflame.com/gcu", True, id="the vendor's"),
        pytest.param("deviceclass.resource.kubernetes.io/shared-gcu.enflame.com", True, id="ours"),
        pytest.param(f"deviceclass.resource.kubernetes.io/{OTHER}", False, id="another driver's"),
        pytest.param("cpu", False, id="cpu"),
    ],
)
def test_a_limit_that_kube_scheduler_serves(limit: str, gated: bool) -> None:
    container = {"name": "main", "resources": {"limits": {limit: "1"}}}
    assert World().gates(containers=[container]) is gated


def test_a_template_is_read_now_and_then() -> None:
    """All replicas of a workload name the same one."""
    world = World()
    world.template(request())
    assert world.gates(template="t")
    calls = len(world.api.faults.calls)
    assert world.gates(template="t")
    assert len(world.api.faults.calls) == calls
    world.template(request(cls=OTHER))
    world.time += 30.0
    assert not world.gates(template="t")


def test_a_template_for_limits_may_be_made_after_its_pod() -> None:
    """The policy names it in the pod, and the controller makes it when it sees the pod."""
    assert World().gates(template="enflame-shared-gcu-2")
    assert not World().gates(template="enflame-shared-gcu-none")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeName": "a"}, id="bound"),
        pytest.param({"affinity": ON_ONE_NODE}, id="of a DaemonSet"),
        pytest.param({"schedulerName": "other"}, id="another scheduler's"),
        pytest.param({"schedulingGates": [{"name": SCHEDULING_GATE}]}, id="gated"),
    ],
)
def test_pods_that_need_no_gate(spec: Object) -> None:
    world = World(schedulers=frozenset({"default-scheduler"}))
    world.api.put(RESOURCE_CLAIMS, claim("c"))
    assert world.gates("c")
    assert not world.gates("c", **spec)


def test_without_a_leader_nobody_would_lift_it() -> None:
    world = World(leads=False)
    world.api.put(RESOURCE_CLAIMS, claim("c"))
    assert not world.gates("c")
    world.leads = True
    assert world.gates("c")


def test_what_cannot_be_read_is_not_gated() -> None:
    world = World()
    world.api.put(RESOURCE_CLAIMS, claim("c"))
    world.api.faults.refuse(Unavailable("no answer"), "get")
    assert not world.gates("c")
