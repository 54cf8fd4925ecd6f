"""Slices and DRS instances from outside: what the machine has, and what people are told."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.mode import Mode
from tests.e2e.events import wait_for_note
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.one_card import OneCard

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
_PREPARE = "FailedPrepareDynamicResources"
_ALLOCATE = "GcuAllocationFailed"


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("mode", "amount", "more"),
    [
        pytest.param(Mode.WHOLE, None, {}, id="whole"),
        pytest.param(Mode.SHARED, 2, {"slices": "2"}, id="shared"),
        pytest.param(Mode.DRS, 3, {"size": "3"}, id="drs"),
    ],
)
def test_the_status_tells_what_the_machine_has(
    one: OneCard, mode: Mode, amount: int | None, more: dict[str, str]
) -> None:
    """Written by the agent's own service account, for the node in its token."""
    one.run("one", mode, amount)
    [device] = one.status_devices("one")
    card = one.machine.card(one.card)
    expected: Object = {
        "card": card.bdf,
        "mode": mode.value,
        "index": card.efsmi_index,
        "minor": card.minor,
        **more,
    }
    ids = {profile.name: profile.id for profile in card.form.profiles}
    for made in one.machine.instances(card.bdf):
        expected |= {"profile": made.profile, "instanceID": made.id, "instanceUUID": made.uuid}
        expected |= {"profileID": ids[made.profile]}
    assert device["data"] == expected
    assert ("instanceUUID" in expected) == (mode is Mode.DRS)
    [condition] = device["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")


@pytest.mark.matrix
def test_a_card_takes_one_mode_at_a_time(one: OneCard) -> None:
    one.run("shared", Mode.SHARED, 4)
    for name, mode, amount in (("more", Mode.SHARED, 3), ("all", Mode.WHOLE, None)):
        one.apply(name, mode, amount)
    one.apply("drs", Mode.DRS, 1)
    one.wait_for_words("more", _ALLOCATE, "fewer than 3 free slices")
    for name in ("all", "drs"):
        one.wait_for_words(name, _ALLOCATE, "in shared mode")
    one.run("rest", Mode.SHARED, 2)
    one.end("more", "all", "rest")
    assert one.virtualization() == "Disable"
    one.end("shared")
    one.wait_for("drs")
    for name, mode in (("whole", Mode.WHOLE), ("slice", Mode.SHARED)):
        one.apply(name, mode)
        one.wait_for_words(name, _ALLOCATE, "in DRS mode")
    one.end("slice", "drs")
    one.wait_for("whole")
    assert one.virtualization() == "Disable"


def test_an_instance_lives_as_long_as_its_claim_is_prepared(one: OneCard) -> None:
    assert one.virtualization() == "Disable"
    one.run("small", Mode.DRS, 1)
    assert one.profiles() == ["1g.6gb"]
    one.run("large", Mode.DRS, 3)
    assert one.profiles() == ["1g.6gb", "3g.20gb"]
    one.end("small")
    assert one.profiles() == ["3g.20gb"]
    assert one.virtualization() == "DRS"
    one.end("large")
    assert one.profiles() == []
    assert one.virtualization() == "Disable"
    assert one.changes() == [
        "drs-on",
        "create-instance",
        "create-instance",
        "destroy-instance",
        "destroy-instance",
        "drs-off",
    ]


@pytest.mark.parametrize(
    "fault",
    [
        "create-fails",
        pytest.param("create-reports-failure-but-makes", marks=pytest.mark.matrix),
    ],
)
def test_a_create_that_fails_leaves_nothing_and_is_told(
    driver: Installation, one: OneCard, fault: str
) -> None:
    one.machine.set_fault(fault, card=one.card)
    try:
        one.apply("one", Mode.DRS, 1)
        one.wait_for_words("one", _PREPARE, f"card {one.card}")
        one.wait_for_words("one", _PREPARE, "--create-instance")
        one.wait_until(lambda: one.virtualization() == "Disable", "a card out of DRS mode")
        assert one.profiles() == []
        assert not driver.cdi_files(one.node)
    finally:
        one.machine.clear_faults()
    # The kubelet asks again within 60 to 90 s, or when the pod changes.
    driver.cluster.kubectl("annotate", "pod", "one", "again=now", one.scope)
    one.wait_for("one")
    assert one.profiles() == ["1g.6gb"]


def test_containers_that_share_some_requests_are_refused_by_the_controller(
    one: OneCard, driver: Installation, namespace: str
) -> None:
    """`main` uses both claims, `other` only one of them: no variable could be right for both."""
    pod = pod_with("first", namespace, name="pod")
    [main] = pod["spec"]["containers"]
    pod["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "second"})
    other = {**main, "name": "other", "resources": {"claims": [{"name": "gcu"}]}}
    main["resources"] = {"claims": [{"name": "gcu"}, {"name": "more"}]}
    pod["spec"]["containers"].append(other)
    claims = [claim_in(Mode.SHARED, name, namespace, 1) for name in ("first", "second")]
    driver.cluster.apply(*claims, pod)
    words = "containers 'main' and 'other'"
    one.wait_for_words("pod", _ALLOCATE, words)
    wait_for_note(driver, namespace, "ResourceClaim", _ALLOCATE, words)
    stored = driver.cluster.get("resourceclaims", one.scope)["items"]
    assert not any(each.get("status", {}).get("allocation") for each in stored)


def test_a_container_with_two_instances_is_refused(
    one: OneCard, driver: Installation, namespace: str
) -> None:
    claim = claim_in(Mode.DRS, "two", namespace, 1)
    requests = claim["spec"]["devices"]["requests"]
    requests.append({**requests[0], "name": "another"})
    driver.cluster.apply(claim, pod_with("two", namespace))
    one.wait_for_words("two", _ALLOCATE, "one instance only")
    stored = driver.cluster.get("resourceclaim", "two", f"--namespace={namespace}")
    assert "allocation" not in stored["status"]
    assert not any(node.instances() for node in map(driver.machine, driver.machines))
