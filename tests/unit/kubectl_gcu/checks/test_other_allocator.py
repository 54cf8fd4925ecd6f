"""What another allocator would refuse, before the switch to it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_CORE, RESOURCE_MEMORY, RESOURCE_SHARED
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.checks.other_allocator import refused
from kubectl_gcu.checks.scheduler_policies import of_claim
from tests.unit.controller.allocator.build import OTHER_CLASS, allocated
from tests.unit.kubectl_gcu.checks.claims_for_scheduler import (
    ADMIN_CASES,
    CASES,
    claim,
    config,
    shares,
)
from tests.unit.kubectl_gcu.checks.installations import HEALTHY, pod, with_pods, with_state


@pytest.mark.parametrize(("made", "is_refused"), [*CASES, *ADMIN_CASES])
def test_python_knows_what_the_policy_refuses(made: Object, *, is_refused: bool) -> None:
    assert bool([*of_claim(made["spec"]["devices"])]) == is_refused


MEMORY = claim(config(memory="7Gi", isolation="best-effort"))
SLICES = claim(config(slices=2))
PACKED = claim(config(packing={"cards": "spread"}))
MIXED = claim(
    gcu={"exactly": shares(1)},
    nic={"exactly": {"deviceClassName": OTHER_CLASS["metadata"]["name"]}},
)
UNKNOWN_FIELD = claim(gcu={"exactly": {**shares(1), "derivedAttributes": []}})


def template(of: Object, **labels: str) -> Object:
    metadata = {"name": "parts", "namespace": "team", "uid": "uid-parts", "labels": labels}
    return {"metadata": metadata, "spec": {"spec": of["spec"]}}


def with_templates(*items: Object) -> Installation:
    classes = (*HEALTHY.objects[DEVICE_CLASSES], OTHER_CLASS)
    objects = {**HEALTHY.objects, DEVICE_CLASSES: classes, RESOURCE_CLAIM_TEMPLATES: items}
    return replace(HEALTHY, objects=objects)


def standing(of: Object, *, owner: str = "", is_allocated: bool = False) -> Object:
    """The claim as it is in the cluster, made for a pod where that is named."""
    found = copy.deepcopy(of)
    found["metadata"] |= {"namespace": "team", "uid": "uid-asks"}
    if owner:
        made_for = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}"}
        found["metadata"]["ownerReferences"] = [made_for | {"controller": True}]
    if is_allocated:
        found["status"] = allocated("asks", "a", "shared-0000-01-00-0")["status"]
    return found


def limited(name: str, *, owner: str = "", **limits: str) -> Object:
    found = pod(name, containers=[{"name": "main", "resources": {"limits": limits}}])
    if owner:
        entry = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        found["metadata"]["ownerReferences"] = [entry | {"controller": True}]
    return found


def became(name: str, template_name: str) -> Object:
    """A pod whose limits became a claim."""
    reference = {"name": "enflame-limits", "resourceClaimTemplateName": template_name}
    return pod(name, resourceClaims=[reference])


def lines(found: Installation, allocator: str) -> Sequence[str]:
    return [str(each) for each in refused(found, allocator)]


UNTRANSLATED = (
    "kube-scheduler cannot translate memory, isolation of its GcuConfig. Request slices or size by "
    "capacity.requests."
)
UNREAD = (
    "kube-scheduler does not read slices 2 of its GcuConfig. Request the same slices by "
    "capacity.requests, or leave it out of GcuConfig."
)
LIMITS = (
    "kube-scheduler cannot translate its limits enflame.com/gcu-memory and enflame.com/gcu-core. "
    "Use enflame.com/drs-gcu or enflame.com/shared-gcu."
)
FIELD = (
    "claim team/parts, request gcu: the field derivedAttributes is not supported. Create the claim "
    "again without it; or, to ignore it in the whole cluster, add derivedAttributes to "
    "controller.ignoredClaimFields of the chart."
)
TO_SCHEDULER: dict[str, tuple[Installation, list[str]]] = {
    "a template by memory": (
        with_templates(template(MEMORY)),
        [f"claim template team/parts: {UNTRANSLATED}"],
    ),
    "slices in GcuConfig alone": (
        with_templates(template(SLICES)),
        [f"claim template team/parts: {UNREAD}"],
    ),
    "a template made for limits": (
        with_templates(template(MEMORY, **{"gcu.enflame.com/made-for-limits": "true"})),
        [],
    ),
    "packing of cards": (
        with_templates(template(PACKED)),
        [
            (
                "claim template team/parts: kube-scheduler ignores packing.cards spread of its "
                "GcuConfig. Nothing is to be done if the first card that fits will do."
            )
        ],
    ),
    "packing of nodes": (
        with_templates(template(claim(config(packing={"nodes": "spread"})))),
        [],
    ),
    "a mixed claim": (with_templates(template(MIXED)), []),
    "a claim that somebody made": (
        with_state(claims=(standing(MEMORY, is_allocated=True),)),
        [f"claim team/asks: {UNTRANSLATED}"],
    ),
    "a claim of a template, allocated": (
        with_state(claims=(standing(MEMORY, owner="user", is_allocated=True),)),
        [],
    ),
    "a claim of a template, waiting": (
        with_state(claims=(standing(SLICES, owner="user"),)),
        [f"claim team/asks: {UNREAD}"],
    ),
    "limits": (
        with_pods(
            limited("one", **{RESOURCE_MEMORY: "6144", RESOURCE_CORE: "20"}),
            limited("two", **{RESOURCE_SHARED: "2"}),
            limited("three", **{RESOURCE_CORE: "0"}),
        ),
        [f"pod default/one: {LIMITS}"],
    ),
    "limits that became a claim": (
        with_pods(
            became("one", "enflame-fixed-share-20480m40c"), became("two", "enflame-shared-gcu-2")
        ),
        [f"pod default/one: {LIMITS}"],
    ),
    "pods of one owner": (
        with_pods(
            *(limited(name, owner="web", **{RESOURCE_MEMORY: "6144"}) for name in ("a-1", "a-2"))
        ),
        [f"ReplicaSet default/web: {LIMITS}"],
    ),
}


@pytest.mark.parametrize(("found", "expected"), TO_SCHEDULER.values(), ids=TO_SCHEDULER)
def test_refused_by_the_policies_of_kube_scheduler(
    found: Installation, expected: list[str]
) -> None:
    assert lines(found, "scheduler") == expected


TO_CONTROLLER: dict[str, tuple[Object, list[str]]] = {
    "devices of two drivers": (
        MIXED,
        [
            (
                "claim template team/parts: claim team/parts mixes devices of gcu.enflame.com with "
                "another driver's (request nic). Split it into one claim for each driver."
            )
        ],
    ),
    "a field that the controller does not know": (
        UNKNOWN_FIELD,
        [f"claim template team/parts: {FIELD}"],
    ),
    "memory": (MEMORY, []),
    "another driver's": (
        claim(nic={"exactly": {"deviceClassName": OTHER_CLASS["metadata"]["name"]}}),
        [],
    ),
}


@pytest.mark.parametrize(("made", "expected"), TO_CONTROLLER.values(), ids=TO_CONTROLLER)
def test_refused_by_the_controller(made: Object, expected: list[str]) -> None:
    assert lines(with_templates(template(made)), "controller") == expected


def test_limits_are_no_matter_to_the_controller() -> None:
    limits: Any = {RESOURCE_MEMORY: "6144"}
    assert lines(with_pods(limited("one", **limits)), "controller") == []
