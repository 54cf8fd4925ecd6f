"""What another allocator would refuse, before the switch to it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object
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
from tests.unit.kubectl_gcu.checks.installations import HEALTHY, with_state


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


def lines(found: Installation, allocator: str) -> Sequence[str]:
    return [str(each) for each in refused(found, allocator)]


AGAIN = (
    "Delete it after the switch, with its pod if it was made for one, and create it again: a new "
    "claim gets the same in capacity.requests."
)
UNREAD = f"kube-scheduler does not read slices of its GcuConfig. {AGAIN}"
FIELD = (
    "claim team/parts, request gcu: the field derivedAttributes is not supported. Create the claim "
    "again without it; or, to ignore it in the whole cluster, add derivedAttributes to "
    "controller.ignoredClaimFields of the chart."
)
TO_SCHEDULER: dict[str, tuple[Installation, list[str]]] = {
    "templates whose claims are written": (
        with_templates(template(MEMORY), template(SLICES)),
        [],
    ),
    "a template with administrative access to a part": (
        with_templates(template(claim(gcu={"exactly": shares(2) | {"adminAccess": True}}))),
        [
            (
                "claim template team/parts: request gcu asks for adminAccess, which is for whole "
                "cards. Request the DeviceClass gcu.enflame.com, or drop adminAccess."
            )
        ],
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
    "packing of another form": (
        with_templates(
            template(claim(config(packing=True))), template(claim(config(packing=["cards"])))
        ),
        [],
    ),
    "a mixed claim": (with_templates(template(MIXED)), []),
    "a claim that somebody made": (
        with_state(claims=(standing(MEMORY, is_allocated=True),)),
        [
            (
                "claim team/asks: kube-scheduler does not read memory, isolation of its "
                f"GcuConfig. {AGAIN}"
            )
        ],
    ),
    "a claim of a template, allocated": (
        with_state(claims=(standing(MEMORY, owner="user", is_allocated=True),)),
        [],
    ),
    "a claim of a template, waiting": (
        with_state(claims=(standing(SLICES, owner="user"),)),
        [f"claim team/asks: {UNREAD}"],
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
