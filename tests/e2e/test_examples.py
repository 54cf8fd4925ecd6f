"""Every example, applied as its README says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.names import ATTR_PCIE_SWITCH
from tests.cluster.workloads import execute
from tests.e2e.installation import CHECKOUT, Installation
from tests.e2e.seen import assert_sees_what_was_granted, granted

EXAMPLES = CHECKOUT / "examples"

Pods = list[dict[str, Any]]


def one_card(driver: Installation, pods: Pods) -> None:
    [pod] = pods
    [cards] = granted(driver, pod).values()
    assert len(cards) == 1


def two_cards_one_switch(driver: Installation, pods: Pods) -> None:
    [pod] = pods
    [cards] = granted(driver, pod).values()
    assert len(cards) == 2
    switch_of = {
        device["attributes"]["card"]["string"]: device["attributes"][ATTR_PCIE_SWITCH]["string"]
        for published in driver.slices()
        if published["spec"]["nodeName"] == pod["spec"]["nodeName"]
        for device in published["spec"]["devices"]
    }
    assert len({switch_of[str(card)] for card in cards}) == 1


def one_claim_two_containers(driver: Installation, pods: Pods) -> None:
    [pod] = pods
    assert len(pod["spec"]["containers"]) == 2
    [cards] = granted(driver, pod).values()
    assert len(cards) == 1


def deployment_with_shm(driver: Installation, pods: Pods) -> None:
    assert len(pods) == 2
    held = {
        (pod["spec"]["nodeName"], card)
        for pod in pods
        for cards in granted(driver, pod).values()
        for card in cards
    }
    assert len(held) == 2
    namespace, name = (pods[0]["metadata"][key] for key in ("namespace", "name"))
    mounts = execute(driver.cluster, namespace, name, "cat", "/proc/mounts")
    [shm] = [line for line in mounts.splitlines() if " /dev/shm " in line]
    assert f"size={8 << 20}k" in shm


CHECKS: dict[str, Callable[[Installation, Pods], None]] = {
    "one-card": one_card,
    "two-cards-one-switch": two_cards_one_switch,
    "one-claim-two-containers": one_claim_two_containers,
    "deployment-with-shm": deployment_with_shm,
}


def test_every_example_is_here() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("*/README.md")} == CHECKS.keys()


@pytest.mark.cluster
@pytest.mark.parametrize("name", CHECKS)
def test_example(driver: Installation, namespace: str, name: str) -> None:
    folder: Path = EXAMPLES / name
    scope = f"--namespace={namespace}"
    driver.cluster.kubectl("apply", scope, f"--filename={folder / name}.yaml")
    if name == "deployment-with-shm":
        driver.cluster.kubectl("rollout", "status", scope, f"deployment/{name}", "--timeout=60s")
    else:
        ready = "--for=condition=Ready"
        driver.cluster.kubectl("wait", scope, ready, f"pod/{name}", "--timeout=60s")
    pods = driver.cluster.get("pods", scope)["items"]
    for pod in pods:
        assert_sees_what_was_granted(driver, pod)
    CHECKS[name](driver, pods)
