"""What a claim with administrative access is stored as where kube-scheduler allocates."""

from __future__ import annotations

from typing import Any

import pytest

from controller.webhook.admin_access import for_administrators
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_ADMIN, CLASS_SHARED, CLASS_WHOLE, TAINT_ADMINISTRATORS
from tests.unit.controller.allocator.build import ANY, claim, first_available, request
from tests.unit.controller.webhook.test_capacity import S60, writes

TOLERATION = {"key": TAINT_ADMINISTRATORS, "operator": "Exists"}
OTHER = {"operator": "Exists", "key": "gcu.enflame.com/unhealthy"}


def admin(cls: str = CLASS_WHOLE, **more: Any) -> Object:
    return request(cls=cls, adminAccess=True, **more)


@pytest.mark.parametrize("cls", [CLASS_WHOLE, CLASS_ADMIN])
def test_a_claim_for_whole_cards(cls: str) -> None:
    [entry] = writes(claim("c", [admin(cls, allocationMode="All")]))["requests"]
    assert entry == admin(CLASS_ADMIN, allocationMode="All", tolerations=[TOLERATION])


def test_tolerations_of_its_own_stay() -> None:
    [entry] = writes(claim("c", [admin(tolerations=[OTHER])]))["requests"]
    assert entry["exactly"]["tolerations"] == [OTHER, TOLERATION]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(request(), id="without the access"),
        pytest.param(request(adminAccess=False), id="declined"),
        pytest.param(admin(CLASS_SHARED), id="a part of a card"),
        pytest.param(admin(ANY), id="a class of somebody's own"),
        pytest.param(first_available("gcu", request("one")), id="alternatives"),
    ],
)
def test_others_stay_as_they_are(asked: Object) -> None:
    made = claim("c", [asked])
    assert writes(made) == made["spec"]["devices"]
    assert for_administrators({}, None) == {}


def test_an_unchanged_claim_is_applied_again() -> None:
    made = claim("c", [admin(), request("work")])
    stored = made | {"spec": {"devices": writes(made)}}
    assert writes(made, S60, stored=stored) == stored["spec"]["devices"]
    assert writes(stored, S60, stored=stored) == stored["spec"]["devices"]


def test_a_claim_that_was_stored_otherwise_keeps_its_spec() -> None:
    stored = claim("c", [admin()])
    changed = stored | {"spec": stored["spec"] | {"devices": {"requests": [admin(count=1)]}}}
    changed["spec"]["devices"]["constraints"] = []
    assert for_administrators(changed["spec"]["devices"], stored) == changed["spec"]["devices"]
