"""Makes cards unhealthy, and reads which are published so."""

from __future__ import annotations

from dra_driver.model.names import TAINT_UNHEALTHY
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import CARDS, Installation


def set_health(driver: Installation, *, healthy: bool) -> None:
    """Of every card; returns when the taints of devices say so."""
    for machine in map(driver.machine, driver.machines):
        for card in machine.state().cards:
            machine.set_card(card.bdf, health=healthy)
    counts = {node: CARDS[machine] for node, machine in driver.machines.items()}
    wanted = dict.fromkeys(counts, 0) if healthy else counts
    wait_until(
        lambda: {node: len(found) for node, found in tainted(driver).items()} == wanted,
        PATIENCE,
        f"{wanted} unhealthy cards",
        seen=lambda: str(tainted(driver)),
    )


def tainted(driver: Installation) -> dict[str, set[str]]:
    """By node, the cards whose devices have the taint `unhealthy`."""
    return {
        node: {
            device["attributes"]["card"]["string"]
            for device in driver.devices(node)
            if any(taint["key"] == TAINT_UNHEALTHY for taint in device.get("taints", ()))
        }
        for node in driver.machines
    }
