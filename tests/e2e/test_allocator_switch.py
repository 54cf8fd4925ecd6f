"""`helm upgrade` with another `allocator` while claims hold cards, there and back."""

from __future__ import annotations

import pytest

from controller.cache.claims import writers_of_allocation
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    TAINT_ALLOCATED_BY,
    TAINT_CHANGING,
)
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.workloads import pod, wait_for_pods
from tests.e2e.by_limits import DRS, SHARED, assert_has, claimed, limits_of
from tests.e2e.installation import Installation, has_mode
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.one_card import OneCard
from tests.e2e.seen import look
from tests.e2e.without_dra import asking

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


def counted(driver: Installation, one: OneCard) -> dict[str, bool]:
    """Of each card of the node, whether its devices have the card's counter: of those with a mode
    all or none."""
    found: dict[str, set[bool]] = {}
    for device in filter(has_mode, driver.devices(one.node.name)):
        card = device["attributes"]["card"]["string"]
        found.setdefault(card, set()).add(bool(device.get("consumesCounters")))
    return {card: has for card, [has] in found.items()}


def writers(one: OneCard, claim: str) -> list[str]:
    return writers_of_allocation(one.cluster.get("resourceclaim", claim, one.scope))


def _run_by_a_limit_that_kube_scheduler_serves(driver: Installation, one: OneCard) -> None:
    """Its pod keeps the limit, and kube-scheduler makes the claim."""
    limited = pod("limited", one.namespace)
    limited["spec"]["containers"][0]["resources"] = {"limits": {"enflame.com/gcu": "1"}}
    one.cluster.apply(limited)
    wait_for_pods(one.cluster, one.namespace, "limited")
    found = one.cluster.get("pod", "limited", one.scope)
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"enflame.com/gcu": "1"}
    assert found["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    seen = look(driver, one.namespace, "limited", "main")
    assert len(seen.visible) == 1
    assert seen.nodes == seen.visible
    one.end("limited")


def _run_by_limits_that_become_claims(driver: Installation, one: OneCard) -> None:
    """Two containers with slices, and a pod with an instance: kube-scheduler allocates the claims
    that admission makes of their limits."""
    asked = {
        "parts": asking("parts", one.namespace, {SHARED: 2}, {SHARED: 1}),
        "instance": asking("instance", one.namespace, {DRS: 3}),
    }
    one.cluster.apply(*asked.values())
    wait_for_pods(one.cluster, one.namespace, *asked)
    for name, manifest in asked.items():
        found = one.cluster.get("pod", name, one.scope)
        assert_has(driver, found, limits_of(manifest["spec"]), claimed(driver, found))
        [status] = found["status"]["resourceClaimStatuses"]
        assert writers(one, status["resourceClaimName"]) == ["kube-scheduler"]
    one.end(*asked)


def _run_pods_that_are_packed(driver: Installation, one: OneCard) -> None:
    """The controller names the fullest node: kube-scheduler alone would spread them. The gate that
    admission sets is lifted."""
    names = [f"packed-{number}" for number in range(6)]
    for name in names:
        one.cluster.apply(
            claim_in(Mode.SHARED, name, one.namespace, 2), pod_with(name, one.namespace)
        )
    wait_for_pods(one.cluster, one.namespace, *names)
    found = [one.cluster.get("pod", name, one.scope) for name in names]
    assert len({each["spec"]["nodeName"] for each in found}) == 1
    assert not any(each["spec"].get("schedulingGates") for each in found)
    scope = f"--namespace={DRIVER_NAMESPACE}"
    controllers = "--selector=app.kubernetes.io/component=controller"
    log = one.cluster.kubectl("logs", scope, controllers, "--tail=-1")
    assert all(f" for pod {one.namespace}/{name}" in log for name in names)
    one.end(*names)


def _kube_scheduler_allocates(driver: Installation, one: OneCard) -> None:
    one.wait_until(lambda: one.tainted(TAINT_CHANGING), "the held card tainted")
    one.wait_until(lambda: sum(counted(driver, one).values()) > 1, "counters on free cards")
    assert one.tainted(TAINT_ALLOCATED_BY)
    assert not counted(driver, one)[one.card]
    one.apply("more", Mode.SHARED, 1)
    one.end("held")
    one.wait_for("more")
    assert writers(one, "more") == ["kube-scheduler"]
    assert counted(driver, one)[one.card]
    assert not one.tainted(TAINT_ALLOCATED_BY)
    one.apply("whole", Mode.WHOLE)
    one.wait_for_words("whole", "FailedScheduling", "cannot allocate all claims")
    one.end("more")
    one.wait_for("whole")
    _run_pods_that_are_packed(driver, one)
    _run_by_a_limit_that_kube_scheduler_serves(driver, one)
    _run_by_limits_that_become_claims(driver, one)


def _the_controller_allocates_again(driver: Installation, one: OneCard) -> None:
    one.wait_until(lambda: one.tainted(TAINT_CHANGING), "the card that kube-scheduler gave tainted")
    assert one.tainted(TAINT_ALLOCATED_BY)
    assert counted(driver, one)[one.card]
    one.apply("last", Mode.SHARED, 3)
    one.end("whole")
    one.wait_for("last")
    assert writers(one, "last") == ["gcu-dra-controller"]
    one.wait_until(lambda: not any(counted(driver, one).values()), "no counters on any card")


def test_each_card_changes_when_its_last_claim_ends(driver: Installation, one: OneCard) -> None:
    served = {"legacyResources": {"servedByScheduler": True}}
    with driver.changed(allocator=ALLOCATOR_CONTROLLER):
        one.run("held", Mode.SHARED, 2)
        driver.install(driver.values(allocator=ALLOCATOR_SCHEDULER, **served))
        _kube_scheduler_allocates(driver, one)
        driver.install(driver.values(allocator=ALLOCATOR_CONTROLLER))
        _the_controller_allocates_again(driver, one)
