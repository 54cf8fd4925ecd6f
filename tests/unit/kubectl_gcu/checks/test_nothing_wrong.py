"""Clusters in which `kubectl gcu doctor` finds nothing, although they look odd."""

from __future__ import annotations

import copy
from dataclasses import replace

from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks import rights
from kubectl_gcu.checks.installation import CLUSTER_ROLES
from kubectl_gcu.inventory.views import ServedBy
from tests.unit.kubectl_gcu.checks.installations import (
    CLAIM,
    HEALTHY,
    found_in,
    part,
    pod,
    role,
    with_pods,
    with_state,
)
from tests.unit.kubectl_gcu.checks.test_programs_and_cards import FOR_SCHEDULER


def evicted(component: str) -> Object:
    """kube-controller-manager deletes such a pod when there are 12,500 of them."""
    found = part(component, "b", version="0.0.1")
    found["metadata"] |= {"name": "evicted", "uid": "evicted"}
    return found | {"status": {"phase": "Failed", "reason": "Evicted"}}


def test_a_controller_that_was_evicted_and_replaced() -> None:
    assert found_in(with_pods(evicted("controller"))) == []


def test_an_evicted_controller_alone_is_none() -> None:
    found = found_in(with_state(pods=(part("agent", "a"), evicted("controller"))))
    assert [each.partition(":")[0] for each in found] == ["no-controller"]


def test_rights_that_an_allocating_controller_alone_needs() -> None:
    needed = rights.NEEDED["controller", ServedBy.CLAIMS] - rights.UNUSED_FOR_SCHEDULER
    agent, _ = HEALTHY.objects[CLUSTER_ROLES]
    roles = (agent, role("controller", needed))
    reduced = {**HEALTHY.objects, CLUSTER_ROLES: roles}
    assert found_in(replace(FOR_SCHEDULER, objects=reduced)) == []
    [line] = found_in(replace(HEALTHY, objects=reduced))
    assert line.startswith("right-missing: account gcu/controller: the controller may not get ")


def test_a_claim_that_a_pod_group_reserved() -> None:
    claim = copy.deepcopy(CLAIM)
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    claim["status"]["reservedFor"].append(group)
    assert found_in(with_state(with_pods(pod("user")), claims=(claim,))) == []
