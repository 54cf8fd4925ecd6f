"""A cluster that could be served either way is changed from DRA to the device plugin, and back."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.model.pci import PciAddress
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import SHARED
from tests.e2e.installation import CARDS, Installation
from tests.e2e.one_card import OneCard
from tests.e2e.seen import Seen, look
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]


class Devices(OldInstallation):
    """The same release as device plugins; its pods come by the cluster's own scheduler."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.left = 0

    def values(self, **changed: Any) -> dict[str, Any]:
        return super().values(**{"mode": "device-plugin", "extender": {}, **changed})

    def published(self) -> bool:
        """Whether the first node counts its cards but for `left` of them."""
        node, machine = next(iter(self.machines.items()))
        return self.allocatable(node, Mode.WHOLE) == CARDS[machine] - self.left


def tainted(driver: Installation, node: str) -> set[tuple[str, bool]]:
    """The cards of the node that ResourceSlices have, and whether new claims are kept away."""
    return {
        (
            str(device["attributes"]["card"]["string"]),
            any(taint["key"] == TAINT_CHANGING for taint in device.get("taints", ())),
        )
        for device in driver.devices(node)
    }


def wait_for_cards(driver: Installation, node: str, wanted: set[tuple[str, bool]]) -> None:
    wait_until(
        lambda: tainted(driver, node) == wanted,
        PATIENCE,
        f"slices with {sorted(wanted)}",
        seen=lambda: str(sorted(tainted(driver, node))),
    )


def test_pods_keep_what_they_have_when_the_way_changes(
    driver: Installation, one: OneCard, namespace: str
) -> None:
    node = one.node.name
    one.run("by-claim", Mode.DRS, 1)
    plugins = Devices(driver.cluster)
    plugins.left = 1
    try:
        plugins.install()
        wait_for_cards(driver, node, {(one.card, True)})
        one.wait_for("by-claim")
        seen = run_by_limits(plugins, namespace, node)
        assert driver.minor(node, PciAddress.parse(one.card)) not in seen.visible
        one.end("by-claim")
        wait_for_cards(driver, node, set())
        wait_until(plugins.published, PATIENCE, "the claim's card beside the others")
    finally:
        driver.install()
    [held] = [card for card, changing in tainted(driver, node) if changing]
    assert seen.visible == {driver.minor(node, PciAddress.parse(held))}
    assert look(driver, namespace, "by-limits", "c0") == seen
    one.run("again", Mode.DRS, 1)
    driver.cluster.kubectl("delete", "pod", "by-limits", f"--namespace={namespace}")
    wait_until(
        lambda: not any(changing for _, changing in tainted(driver, node)), PATIENCE, "no taint"
    )
    one.end("again")


def run_by_limits(plugins: Devices, namespace: str, node: str) -> Seen:
    """What a pod of two slices sees."""
    made = asking(
        "by-limits",
        namespace,
        {SHARED: 2},
        schedulerName="default-scheduler",
        nodeSelector={"kubernetes.io/hostname": node},
    )
    plugins.cluster.apply(made)
    wait_for_pods(plugins.cluster, namespace, "by-limits")
    found = plugins.cluster.get("pod", "by-limits", f"--namespace={namespace}")
    plugins.assert_has_what_it_asks(found)
    return look(plugins, namespace, "by-limits", "c0")
