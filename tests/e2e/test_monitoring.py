"""Prometheus scrapes the driver: who holds which card, each panel's query, and an alert."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from controller import metric_specs as specs
from dra_driver.model.mode import Mode
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import CHART, Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.prometheus import Prometheus, scraping
from tests.e2e.seen import cards

pytestmark = pytest.mark.cluster

DASHBOARDS = CHART / "files" / "dashboards"
# Of names of nodes; this controller allocates, and names none.
OF_NAMES = (specs.NOMINATED_PODS_BOUND.name, specs.ARRIVED_PODS.name, specs.UNDECIDED_GATES.name)
HELD = {"slices": (Mode.SHARED, 2), "instance": (Mode.DRS, 3), "whole": (Mode.WHOLE, None)}


@pytest.fixture
def prometheus(
    driver: Installation, tmp_path: Path, cluster_report: Callable[[str], None]
) -> Iterator[Prometheus]:
    with scraping(driver, tmp_path, cluster_report) as found:
        yield found


def queries(node: str) -> Iterator[tuple[str, str]]:
    """Panel and query of each target of all dashboards, where the controller allocates."""
    for file in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$node", node)
                if not any(name in query for name in OF_NAMES):
                    yield f"{file.stem}: {panel['title']}", query


def test_cards_holders_panels_and_an_alert(
    driver: Installation, namespace: str, prometheus: Prometheus
) -> None:
    for name, (mode, amount) in HELD.items():
        driver.cluster.apply(claim_in(mode, name, namespace, amount), pod_with(name, namespace))
    wait_for_pods(driver.cluster, namespace, *HELD)
    pods = {name: driver.cluster.get("pod", name, f"--namespace={namespace}") for name in HELD}
    where = {
        name: (pod["spec"]["nodeName"], *map(str, cards(driver, pod))) for name, pod in pods.items()
    }

    def held() -> dict[str, tuple[str, str]]:
        found = prometheus.query(f'gcu_card_allocated{{claim_namespace="{namespace}"}}')
        return {
            each["metric"]["claim"]: (each["metric"]["node"], each["metric"]["pci_bus_id"])
            for each in found
        }

    wait_until(lambda: held() == where, PATIENCE, "the holders", seen=lambda: str(held()))

    def containers() -> dict[str, tuple[str, str, str]]:
        found = prometheus.query(f'gcu_card_container_info{{namespace="{namespace}"}}')
        labels = [each["metric"] for each in found]
        # Prometheus drops empty labels, which these are while the kubelet does not answer.
        return {
            each["claim"]: (each["node"], each.get("pod"), each.get("container")) for each in labels
        }

    users = {
        name: (where[name][0], name, pod["spec"]["containers"][0]["name"])
        for name, pod in pods.items()
    }
    wait_until(lambda: containers() == users, PATIENCE, "pods", seen=lambda: str(containers()))

    node, card = where["whole"]
    machine = driver.machine(node)
    machine.set_card(card, health=False)
    try:
        wait_until(lambda: is_pending(prometheus, node, card), PATIENCE, "an alert on the card")
        assert {rule["health"] for rule in prometheus.rules().values()} == {"ok"}
        for panel, query in queries(node):
            wait_until(partial(prometheus.has_data, query), PATIENCE, f"{panel}: {query}")
    finally:
        machine.set_card(card, health=True)


def is_pending(prometheus: Prometheus, node: str, card: str) -> bool:
    """Whether the alert on the card is active: it fires after five minutes."""
    wanted = {"node": node, "pci_bus_id": card, "problem": "unhealthy", "value": "health"}
    alerts = prometheus.rules()["GcuCardProblem"]["alerts"]
    return any(wanted.items() <= each["labels"].items() for each in alerts)
