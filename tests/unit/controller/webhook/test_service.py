"""Calls of an API server: what is answered to each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.webhook.limits import LimitRules
from controller.webhook.service import AMOUNTS, GATE, LIMITS, WebhookService, with_dra
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_SHARED, DEVICE_CLASSES, RESOURCE_SHARED
from tests.control_plane.legacy import asking
from tests.unit.controller.webhook.patching import admitted, review
from tests.unit.controller.webhook.test_amounts import claim, exactly


class Called:
    """The service, and what it counts."""

    def __init__(self, *, translates: bool = True) -> None:
        self._registry = CollectorRegistry()
        rules = LimitRules(frozenset({"gcushare"}), "default-scheduler", drop_node_selector=True)
        mutations = with_dra(DEVICE_CLASSES, rules, translates=lambda: translates)
        self.answers = WebhookService(mutations, self._registry).answers

    def count(self, path: str, result: str) -> float | None:
        labels = {"path": path, "result": result}
        return self._registry.get_sample_value("gcu_webhook_reviews_total", labels)


def test_amounts() -> None:
    called = Called()
    made = admitted(called.answers[AMOUNTS], claim([exactly("a", CLASS_SHARED, slices="2")], []))
    assert made["spec"]["devices"]["config"][0]["opaque"]["parameters"]["slices"] == 2
    assert admitted(called.answers[AMOUNTS], made) == made
    assert called.count(AMOUNTS, "patched") == called.count(AMOUNTS, "unchanged") == 1


def test_limits() -> None:
    made = admitted(Called().answers[LIMITS], asking("team", {RESOURCE_SHARED: "2"}))
    assert made["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == "enflame-shared-gcu-2"


def test_limits_that_are_left_to_another_plugin() -> None:
    """And its scheduler."""
    asked = asking("team", {RESOURCE_SHARED: "2"}, schedulerName="gcushare")
    assert admitted(Called().answers[LIMITS], asked) != asked
    called = Called(translates=False)
    assert admitted(called.answers[LIMITS], asked) == asked
    assert called.count(LIMITS, "unchanged") == 1


CLAIMS = [{"name": "gcu", "resourceClaimName": "c"}]
GATES: dict[str, tuple[Object, list[str]]] = {
    "a pod with claims": ({"resourceClaims": CLAIMS}, ["gcu.enflame.com/allocation"]),
    "a pod without": ({}, []),
    "a bound pod": ({"resourceClaims": CLAIMS, "nodeName": "node-1"}, []),
    "a pod with another gate": (
        {"resourceClaims": CLAIMS, "schedulingGates": [{"name": "example.com/quota"}]},
        ["example.com/quota", "gcu.enflame.com/allocation"],
    ),
    "a pod with the gate": (
        {"resourceClaims": CLAIMS, "schedulingGates": [{"name": "gcu.enflame.com/allocation"}]},
        ["gcu.enflame.com/allocation"],
    ),
}


@pytest.mark.parametrize(("spec", "gates"), GATES.values(), ids=GATES)
def test_gate(spec: Object, gates: list[str]) -> None:
    made = admitted(Called().answers[GATE], {"metadata": {"name": "p"}, "spec": spec})
    assert [each["name"] for each in made["spec"].get("schedulingGates", ())] == gates


def response(body: bytes) -> Any:
    return json.loads(Called().answers[AMOUNTS](body))["response"]


def test_denied_in_words() -> None:
    denied = response(review(claim([exactly("a", CLASS_SHARED, memory="1Gi")], [])))
    assert (denied["uid"], denied["allowed"]) == ("review-1", False)
    assert denied["status"]["code"] == 422
    assert "request a: the capacity memory cannot be requested here" in denied["status"]["message"]


def test_a_fault_of_ours_denies_and_is_counted() -> None:
    called = Called()
    broken = json.loads(called.answers[AMOUNTS](review({"spec": {"devices": {"requests": [7]}}})))
    assert not broken["response"]["allowed"]
    assert broken["response"]["status"]["code"] == 500
    assert "internal error of gcu-dra-controller" in broken["response"]["status"]["message"]
    assert called.count(AMOUNTS, "failed") == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1", "request": {"uid": 1, "object": {}}}',
        b'{"apiVersion": "admission.k8s.io/v1beta1", "request": {"uid": "1", "object": {}}}',
    ],
)
def test_what_no_api_server_sends(body: bytes) -> None:
    assert not response(body)["allowed"]
