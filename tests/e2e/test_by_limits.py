"""The same manifests, by the vendor's limits, where cards are given out by DRA and where by device
plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from dra_driver.device_plugin.node_report import GCUSHARE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import Holds, assert_has, claimed, written
from tests.e2e.installation import CHECKOUT, Installation
from tests.e2e.without_dra import OldInstallation

pytestmark = pytest.mark.cluster

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """`holds` gives what the containers of a running pod were given, as others are told of it."""

    driver: Installation
    holds: Callable[[Object], Holds]


@contextmanager
def with_dra(request: pytest.FixtureRequest) -> Iterator[World]:
    """Whose limits become claims. People label its nodes, as the vendor's manual has it; device
    plugins do so themselves."""
    driver: Installation = request.getfixturevalue("installed")
    driver.cluster.kubectl("label", "nodes", "--all", "--overwrite", f"{GCUSHARE}=true")
    try:
        yield World(driver, partial(claimed, driver))
    finally:
        driver.cluster.kubectl("label", "nodes", "--all", f"{GCUSHARE}-")


@contextmanager
def with_device_plugins(request: pytest.FixtureRequest) -> Iterator[World]:
    driver: OldInstallation = request.getfixturevalue("without_dra")
    yield World(driver, driver.told)


@pytest.fixture(params=[with_dra, with_device_plugins], ids=["DRA", "device plugins"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with request.param(request) as made:
        made.driver.wait_for_rest()
        yield made
        made.driver.wait_for_rest()


@pytest.mark.parametrize("name", ["by-limits", "gcushare"])
def test_each_container_has_what_its_limit_says(world: World, namespace: str, name: str) -> None:
    folder = CHECKOUT / "examples" / name
    asked = list(written(folder))
    cluster, scope = world.driver.cluster, f"--namespace={namespace}"

    def pods() -> list[Object]:
        found: list[Object] = cluster.get("pods", scope)["items"]
        return found

    cluster.kubectl("apply", scope, f"--filename={folder}")
    wait_until(lambda: len(pods()) == len(asked), PATIENCE, "all pods to be made")
    wait_for_pods(cluster, namespace, *(each["metadata"]["name"] for each in pods()))
    found = pods()
    assert Counter(map(maker, found)) == Counter(made for made, _ in asked)
    for pod in found:
        assert_has(world.driver, pod, dict(asked)[maker(pod)], world.holds(pod))
    beside = [each["spec"]["nodeName"] for each in found if "side-by-side" in labels(each)]
    assert len(set(beside)) <= 1


def maker(pod: Object) -> str:
    """The name of the manifest: the Deployment's, which its label repeats, or the pod's own."""
    return str(labels(pod).get("app", pod["metadata"]["name"]))


def labels(pod: Object) -> Object:
    found: Object = pod["metadata"].get("labels", {})
    return found
