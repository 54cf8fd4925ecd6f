"""Amounts, limits and the gate below Kubernetes 1.36, which drops amounts after admission."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import Invalid, KubeError, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.names import (
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
    RESOURCE_SHARED,
    SCHEDULING_GATE,
)
from tests.cluster.cluster import Cluster
from tests.cluster.workloads import pod
from tests.control_plane.legacy import asking
from tests.control_plane.objects import pod_with, shared, whole
from tests.control_plane.without_taints.webhook_world import (
    GATED,
    OTHER_CLASS,
    PLAIN,
    WebhookWorld,
    webhook_world,
)

pytestmark = pytest.mark.control_plane

FAILED = "failed calling webhook .{}[.]gcu[.]enflame[.]com"


@pytest.fixture(scope="module")
def world(
    control_plane: Cluster,
    api: Client,
    controller_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WebhookWorld]:
    folder = tmp_path_factory.mktemp("webhook")
    with webhook_world(control_plane, api, controller_kubeconfig, folder) as world:
        yield world


def form(device_class: str, *, bus: int | None = None, **capacity: str) -> Object:
    """A request, for devices of the card at that bus alone."""
    found: Object = {"deviceClassName": device_class}
    if bus is not None:
        card = f'device.attributes["{DRIVER}"].card == "0000:{bus:02x}:00.0"'
        found["selectors"] = [{"cel": {"expression": card}}]
    return found | ({"capacity": {"requests": capacity}} if capacity else {})


def spec(*forms: Object, **more: Any) -> Object:
    """Requests `gcu-0`, `gcu-1`, …"""
    requests = [{"name": f"gcu-{i}", "exactly": each} for i, each in enumerate(forms)]
    return {"devices": {"requests": requests, **more}}


def claim(name: str, wanted: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": PLAIN},
        "spec": wanted,
    }


def template(name: str, wanted: Object) -> Object:
    made = claim(name, {"spec": wanted})
    return made | {"kind": "ResourceClaimTemplate"}


def asked(devices: Object) -> dict[str, Object]:
    """By request what the entries of `config` ask for."""
    return {
        request: each["opaque"]["parameters"]
        for each in devices.get("config", ())
        for request in each["requests"]
    }


def amounts(stored: Object) -> list[tuple[str, str, dict[str, str]]]:
    """What the claim was granted: device, request and consumption."""
    return [(each.device, each.request, dict(each.consumed)) for each in results(stored)]


CONFIG = {"apiVersion": f"{DRIVER}/v1alpha1", "kind": "GcuConfig"}
TWO = spec(form(CLASS_SHARED, slices="2"))


def test_a_standard_claim_is_allocated_with_its_amount(world: WebhookWorld) -> None:
    """Two claims share a card, and a third one finds it full."""
    world.add_node("amounts", shared(0))
    for name, slices in (("four", "4"), ("two", "2"), ("late", "1")):
        made = claim(name, spec(form(CLASS_SHARED, bus=0, slices=slices)))
        world.api.create(RESOURCE_CLAIMS, made)
    stored = world.api.get(RESOURCE_CLAIMS, "four", namespace=PLAIN)["spec"]["devices"]
    assert "capacity" not in stored["requests"][0]["exactly"]
    assert asked(stored) == {"gcu-0": CONFIG | {"slices": 4}}
    device = "shared-0000-00-00-0"
    for name, slices in (("four", "4"), ("two", "2")):
        world.api.create(PODS, pod_with(name, PLAIN, name))
        world.bound(PLAIN, name)
        found = world.allocated(PLAIN, name)
        assert amounts(found) == [(device, "gcu-0", {"slices": slices})]
        [result] = found["status"]["allocation"]["devices"]["results"]
        assert not result.keys() & {"shareID", "consumedCapacity"}
    world.api.create(PODS, pod_with("late", PLAIN, "late"))
    world.wait_for_event(PLAIN, "late", "without a free slice")
    for name in ("late", "two", "four"):
        world.end(PLAIN, name)


def test_a_template_with_two_requests(world: WebhookWorld) -> None:
    world.add_node("template", shared(1))
    wanted = spec(form(CLASS_SHARED, bus=1, slices="2"), form(CLASS_SHARED, bus=1))
    world.api.create(RESOURCE_CLAIM_TEMPLATES, template("pair", wanted))
    stored = world.api.get(RESOURCE_CLAIM_TEMPLATES, "pair", namespace=PLAIN)["spec"]["spec"]
    assert asked(stored["devices"]) == {"gcu-0": CONFIG | {"slices": 2}}
    world.api.create(PODS, pod_with("pair", PLAIN, template="pair"))
    made = world.bound(PLAIN, "pair")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    device = "shared-0000-01-00-0"
    assert amounts(world.allocated(PLAIN, made)) == [
        (device, "gcu-0", {"slices": "2"}),
        (device, "gcu-1", {"slices": "1"}),
    ]
    world.end(PLAIN, "pair")


def test_a_manifest_can_be_applied_again(world: WebhookWorld) -> None:
    """Specs are immutable: what is sent must become what is stored."""
    manifest = json.dumps(claim("again", TWO))
    for command in (
        ["apply"],
        ["apply"],
        ["replace"],
        ["apply", "--server-side", "--force-conflicts"],
    ):
        world.cluster.kubectl(*command, "--filename=-", stdin=manifest)
    stored = world.api.get(RESOURCE_CLAIMS, "again", namespace=PLAIN)["spec"]["devices"]
    assert asked(stored) == {"gcu-0": CONFIG | {"slices": 2}}


def test_alternatives(world: WebhookWorld) -> None:
    subs = [
        {"name": "many", **form(CLASS_SHARED, slices="4")},
        {"name": "card", **form(CLASS_WHOLE)},
    ]
    wanted = {"devices": {"requests": [{"name": "r", "firstAvailable": subs}]}}
    stored = world.api.create(RESOURCE_CLAIMS, claim("either", wanted))
    assert asked(stored["spec"]["devices"]) == {"r/many": CONFIG | {"slices": 4}}


def test_forms_that_differ_are_refused_in_words(world: WebhookWorld) -> None:
    opaque = {"driver": DRIVER, "parameters": CONFIG | {"slices": 3}}
    both = spec(form(CLASS_SHARED, slices="2"), config=[{"requests": ["gcu-0"], "opaque": opaque}])
    with pytest.raises(
        Invalid, match="request gcu-0: its GcuConfig asks for slices 3, and its cap"
    ):
        world.api.create(RESOURCE_CLAIMS, claim("both", both))


def test_tolerations_and_distinct_attributes_are_refused_in_words(world: WebhookWorld) -> None:
    """The API server would drop them."""
    tolerating = form(CLASS_WHOLE) | {"tolerations": [{"key": "a.example.com/b", "value": "c"}]}
    distinct = [{"distinctAttribute": f"{DRIVER}/card"}]
    for wanted, words in (
        (spec(tolerating), "request gcu-0: API servers before Kubernetes 1.36 drop tolerations"),
        (spec(form(CLASS_WHOLE), constraints=distinct), "drop distinctAttribute"),
    ):
        with pytest.raises(Invalid, match=words):
            world.api.create(RESOURCE_CLAIMS, claim("dropped", wanted))
        with pytest.raises(Invalid, match=words):
            world.api.create(RESOURCE_CLAIM_TEMPLATES, template("dropped", wanted))


def test_another_drivers_amounts_are_its_own(world: WebhookWorld) -> None:
    """The API server drops them."""
    stored = world.api.create(RESOURCE_CLAIMS, claim("nic", spec(form(OTHER_CLASS, bandwidth="1"))))
    assert stored["spec"]["devices"]["requests"][0]["exactly"].get("capacity") is None
    assert "config" not in stored["spec"]["devices"]


def test_a_pod_with_limits_gets_its_claim(world: WebhookWorld) -> None:
    world.add_node("limits", shared(2))
    made = asking(PLAIN, {RESOURCE_SHARED: "2"}, name="legacy", schedulerName="gcushare-scheduler")
    world.api.create(PODS, made)
    found = world.bound(PLAIN, "legacy")
    assert found["spec"]["schedulerName"] == "default-scheduler"
    name = found["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    [(_, request, consumed)] = amounts(world.allocated(PLAIN, name))
    assert (request, consumed) == ("gcu-0", {"slices": "2"})
    world.end(PLAIN, "legacy")


def test_limits_that_fit_no_claim_are_refused_in_words(world: WebhookWorld) -> None:
    with pytest.raises(KubeError, match="each limit 999 at most"):
        world.api.create(PODS, asking(PLAIN, {RESOURCE_SHARED: "1000"}, name="absurd"))


def test_the_gate_is_set_and_lifted(world: WebhookWorld) -> None:
    world.add_node("gate", whole(3))
    made = claim("gated", spec(form(CLASS_WHOLE)))
    made["metadata"]["namespace"] = GATED
    world.api.create(RESOURCE_CLAIMS, made)
    stored = world.api.create(PODS, pod_with("gated", GATED, "gated"))
    assert stored["spec"]["schedulingGates"] == [{"name": SCHEDULING_GATE}]
    world.bound(GATED, "gated")
    ungated = world.api.create(PODS, pod("other", GATED))
    assert "schedulingGates" not in ungated["spec"]


def test_a_dry_run_leaves_nothing(world: WebhookWorld) -> None:
    made = world.api.create(RESOURCE_CLAIMS, claim("dry", TWO), dry_run=True)
    assert asked(made["spec"]["devices"]) == {"gcu-0": CONFIG | {"slices": 2}}
    asked_for = asking(PLAIN, {RESOURCE_SHARED: "5"}, name="dry")
    world.api.create(PODS, asked_for, dry_run=True)
    for resource, name in (
        (RESOURCE_CLAIMS, "dry"),
        (PODS, "dry"),
        (RESOURCE_CLAIM_TEMPLATES, "enflame-shared-gcu-5"),
    ):
        with pytest.raises(NotFound):
            world.api.get(resource, name, namespace=PLAIN)


def test_without_the_webhook_only_amounts_and_limits_are_refused(world: WebhookWorld) -> None:
    world.stop_controller()
    try:
        with pytest.raises(KubeError, match=FAILED.format("amounts")):
            world.api.create(RESOURCE_CLAIMS, claim("down", TWO))
        with pytest.raises(KubeError, match=FAILED.format("limits")):
            world.api.create(PODS, asking(PLAIN, {RESOURCE_SHARED: "1"}, name="down"))
        for name, wanted in (
            ("down-card", spec(form(CLASS_WHOLE))),
            ("down-default", spec(form(CLASS_SHARED))),
            ("down-nic", spec(form(OTHER_CLASS, bandwidth="1"))),
        ):
            world.api.create(RESOURCE_CLAIMS, claim(name, wanted))
        world.api.create(PODS, pod("down-pod", PLAIN))
        gated = world.api.create(PODS, pod_with("down-gated", GATED, "any"))
        assert "schedulingGates" not in gated["spec"]
    finally:
        world.start_controller()
