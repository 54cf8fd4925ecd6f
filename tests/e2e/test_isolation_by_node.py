"""A label of a node decides in which modes its cards are offered, and so which isolation it has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from dra_driver.config.device_config import API_VERSION, ISOLATION, KIND
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_TYPE, CLASS_PART, DRIVER
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.events import wait_for_note
from tests.e2e.installation import Installation, has_mode
from tests.e2e.manifests import Object, claim, pod_with

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

_LABEL = "example.com/isolation"


@pytest.fixture
def nodes(driver: Installation) -> Iterator[dict[str, str]]:
    """By isolation the node that has it, once its cards are offered so."""
    rules = [
        {"nodeSelector": {_LABEL: word}, "modes": [Mode.WHOLE, mode]}
        for word, mode in ISOLATION.items()
    ]
    chosen = dict(zip(ISOLATION, driver.machines, strict=True))
    with driver.changed(cards={"rules": rules}):
        for word, node in chosen.items():
            driver.cluster.kubectl("label", "node", node, f"{_LABEL}={word}")
        try:
            for word, node in chosen.items():
                wanted = {Mode.WHOLE, ISOLATION[word]}
                wait_until(partial(is_offered, driver, node, wanted), PATIENCE, f"modes of {node}")
            yield chosen
        finally:
            driver.cluster.kubectl("label", "node", *chosen.values(), f"{_LABEL}-")


def is_offered(driver: Installation, node: str, modes: set[Mode]) -> bool:
    """Whether the node's cards are offered in these modes and no others."""
    devices = filter(has_mode, driver.devices(node))
    return {each["attributes"][ATTR_TYPE]["string"] for each in devices} == modes


def isolated(name: str, namespace: str, isolation: str) -> Object:
    """A claim for a tenth of a card."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "cores": 10, "isolation": isolation}
    made = claim(name, namespace, config=[{"opaque": {"driver": DRIVER, "parameters": parameters}}])
    made["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = CLASS_PART
    return made


def test_a_claim_goes_where_its_isolation_is(
    driver: Installation, nodes: dict[str, str], namespace: str
) -> None:
    cluster, scope = driver.cluster, f"--namespace={namespace}"
    for word in nodes:
        cluster.apply(isolated(word, namespace, word), pod_with(word, namespace))
    wait_for_pods(cluster, namespace, *nodes)
    assert {word: cluster.get("pod", word, scope)["spec"]["nodeName"] for word in nodes} == nodes
    elsewhere = {"kubernetes.io/hostname": nodes["fixed-share"]}
    cluster.apply(
        isolated("waits", namespace, "best-effort"),
        pod_with("waits", namespace, nodeSelector=elsewhere),
    )
    words = "these cards are offered as whole and drs (isolation fixed-share) only"
    wait_for_note(driver, namespace, "Pod", "GcuAllocationFailed", words)
    cluster.delete_pods(namespace, *nodes, "waits")
