"""Pods that ask by limits, as the vendor's manuals have it, on a Kubernetes without DRA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.pci import PciAddress
from dra_driver.model.plugin_device import RESOURCES
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pod, wait_for_pods
from tests.e2e.seen import look
from tests.e2e.without_dra import SCHEDULER, OldInstallation

pytestmark = pytest.mark.cluster

WHOLE, SHARED, DRS = (RESOURCES[mode] for mode in (Mode.WHOLE, Mode.SHARED, Mode.DRS))
_DONE = {"Running", "Failed"}


@pytest.fixture(scope="module")
def installed(old_cluster: Cluster) -> OldInstallation:
    installation = OldInstallation(old_cluster)
    installation.load_scheduler()
    installation.install()
    return installation


@pytest.fixture
def driver(installed: OldInstallation) -> Iterator[OldInstallation]:
    """The installed driver; afterwards all cards are free again, and counted so."""
    yield installed
    installed.wait_for_rest()
    wait_until(installed.published, 60.0, "all cards to be counted again")


def asking(name: str, namespace: str, *limits: Mapping[str, int]) -> dict[str, Any]:
    """A pod of one container for each of `limits`, for the vendor's scheduler."""
    made = pod(name, namespace, schedulerName=SCHEDULER, terminationGracePeriodSeconds=1)
    [first] = made["spec"]["containers"]
    made["spec"]["containers"] = [
        {**first, "name": f"c{n}", "resources": {"limits": {k: str(v) for k, v in each.items()}}}
        for n, each in enumerate(limits)
    ]
    return made


@pytest.mark.parametrize(
    ("limits", "cards", "amount"),
    [
        ([{SHARED: 2}], 1, 2),
        ([{DRS: 1}], 1, 1),
        ([{DRS: 3}], 1, 3),
        ([{DRS: 6}], 1, 6),
        ([{WHOLE: 2}], 2, 1),
        ([{SHARED: 2}, {SHARED: 1}], 1, None),
    ],
    ids=["2 slices", "DRS 1", "DRS 3", "DRS 6", "2 cards", "two containers on one card"],
)
def test_a_pod_gets_what_its_limits_say(
    driver: OldInstallation,
    namespace: str,
    limits: list[dict[str, int]],
    cards: int,
    amount: int | None,
) -> None:
    driver.cluster.apply(asking("one", namespace, *limits))
    wait_for_pods(driver.cluster, namespace, "one")
    found = driver.cluster.get("pod", "one", "--namespace", namespace)
    held = wait_until(partial(driver.held_by, found), 10.0, "the Node to tell of the pod")
    assert len(held) == cards
    assert amount is None or set(held.values()) == {amount}
    node = found["spec"]["nodeName"]
    minors = frozenset(driver.minor(node, PciAddress.parse(each)) for each in held)
    for n in range(len(limits)):
        seen = look(driver, namespace, "one", f"c{n}")
        assert (seen.visible, seen.nodes) == (minors, minors)
        assert bool(seen.tops) is (DRS in limits[0])
    assert set(found["metadata"]["annotations"][ANNOTATION_ASSIGNED].split(",")) == set(held)


def test_a_burst_of_mixed_pods_is_admitted_wherever_it_is_sent(
    driver: OldInstallation, namespace: str
) -> None:
    """12 cards: 24 pods that fit, created at once."""
    sizes = (
        [{SHARED: 3}] * 8 + [{DRS: 3}] * 8 + [{WHOLE: 1}] * 4 + [{SHARED: 6}] * 2 + [{DRS: 6}] * 2
    )
    # In turns, so that modes meet.
    order = [sizes[n * 7 % len(sizes)] for n in range(len(sizes))]
    made = [asking(f"pod-{n:02}", namespace, each) for n, each in enumerate(order)]
    driver.cluster.apply(*made)

    def phases() -> Counter[str]:
        found = driver.cluster.get("pods", "--namespace", namespace)["items"]
        return Counter(each["status"]["phase"] for each in found)

    def settled() -> bool:
        return set(phases()) <= _DONE

    wait_until(settled, 90.0, "all pods to run or fail", seen=lambda: str(phases()))
    assert phases() == {"Running": len(made)}


def test_a_pod_that_finds_no_card_waits_and_then_runs(
    driver: OldInstallation, namespace: str
) -> None:
    """All cards are full and in DRS mode: it is told why, and takes the first one that is left."""
    fill = [asking(f"fill-{n:02}", namespace, {DRS: 6}) for n in range(12)]
    driver.cluster.apply(*fill)
    wait_for_pods(driver.cluster, namespace, *(each["metadata"]["name"] for each in fill))
    driver.cluster.apply(asking("late", namespace, {SHARED: 2}))

    def reasons() -> str:
        selector = "--field-selector=involvedObject.name=late,reason=FailedScheduling"
        found = driver.cluster.get("events", "--namespace", namespace, selector)["items"]
        return "\n".join(str(each["message"]) for each in found)

    wait_until(lambda: "in DRS mode" in reasons() or "Insufficient" in reasons(), 30.0, "a reason")
    driver.cluster.kubectl("delete", "pod", "fill-00", "--namespace", namespace)
    wait_for_pods(driver.cluster, namespace, "late", timeout=90)
