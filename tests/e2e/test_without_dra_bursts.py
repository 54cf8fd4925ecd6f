"""Pods by limits that come at once, on a Kubernetes without DRA."""

from __future__ import annotations

from random import Random

import pytest

from dra_driver.model.mode import Mode
from tests.e2e.bursts import Request, burst, mixed
from tests.e2e.without_dra import OldInstallation
from tests.seed import SEED

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


@pytest.fixture
def driver(without_dra: OldInstallation) -> OldInstallation:
    """All of whose cards are free."""
    without_dra.wait_for_rest()
    return without_dra


def test_50_pods_of_mixed_sizes(driver: OldInstallation, namespace: str) -> None:
    """Every pod that fits runs. One may come to a node in vain, as the kubelet names no pod when it
    asks for devices; ``make bench-bursts`` tells how many do. ``GCU_SEED`` makes the same pods
    again."""
    outcome = burst(driver, namespace, mixed(Random(SEED)))
    what = f"GCU_SEED={SEED}: {outcome}"
    print(what)
    assert len(outcome.refusals) <= 1, what
    assert outcome.failed == 0, what
    assert outcome.running + outcome.waiting + len(outcome.refusals) == 50, what


def test_48_pods_on_one_node(driver: OldInstallation, namespace: str) -> None:
    """As many as its 8 cards have partitions."""
    selector = {"kubernetes.io/hostname": driver.cluster.nodes[0].name}
    requests = [Request(Mode.DRS)] * 48
    outcome = burst(driver, namespace, requests, nodeSelector=selector)
    assert (outcome.running, outcome.granted) == (48, 48), str(outcome)
