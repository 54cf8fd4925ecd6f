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

from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER, RESOURCE_COUNT
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.by_limits import Holds, assert_has, claimed, written
from tests.e2e.installation import CARDS, CHECKOUT, Installation
from tests.e2e.seen import Seen, look
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = pytest.mark.cluster

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """`holds` gives what the containers of a running pod were given, as others are told of it."""

    driver: Installation
    holds: Callable[[Object], Holds]


@contextmanager
def with_dra(request: pytest.FixtureRequest) -> Iterator[World]:
    """Whose limits become claims."""
    driver: Installation = request.getfixturevalue("installed")
    yield World(driver, partial(claimed, driver))


@contextmanager
def with_allocator(allocator: str, request: pytest.FixtureRequest) -> Iterator[World]:
    """It allocates the claims that limits become."""
    driver: Installation = request.getfixturevalue("installed")
    with driver.changed(allocator=allocator):
        yield World(driver, partial(claimed, driver))


@contextmanager
def with_device_plugins(request: pytest.FixtureRequest) -> Iterator[World]:
    driver: OldInstallation = request.getfixturevalue("without_dra")
    yield World(driver, driver.told)


_WORLDS = [
    pytest.param(with_dra, id="with DRA"),
    pytest.param(with_device_plugins, id="without DRA"),
]
_BY_THE_OTHER_ALLOCATOR = [
    pytest.param(
        partial(with_allocator, ALLOCATOR_CONTROLLER),
        id="by the controller",
        marks=[pytest.mark.matrix, pytest.mark.kubernetes(least="1.37")],
    ),
    pytest.param(
        partial(with_allocator, ALLOCATOR_SCHEDULER),
        id="by kube-scheduler",
        marks=[pytest.mark.matrix, pytest.mark.kubernetes(least="1.36", below="1.37")],
    ),
]
"""The one that helm does not choose."""


@pytest.fixture(params=_WORLDS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with request.param(request) as made:
        made.driver.wait_for_rest()
        yield made
        made.driver.wait_for_rest()


_BESIDE = "side-by-side"  # the label of pods that must share a node


@pytest.mark.parametrize("name", ["by-limits", pytest.param("gcushare", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("world", [*_WORLDS, *_BY_THE_OTHER_ALLOCATOR], indirect=True)
def test_each_container_has_what_its_limit_says(world: World, namespace: str, name: str) -> None:
    folder = CHECKOUT / "examples" / name
    asked = list(written(folder))
    cluster, scope = world.driver.cluster, f"--namespace={namespace}"

    def pods() -> list[Object]:
        found: list[Object] = cluster.get("pods", scope)["items"]
        return found

    # Alone at first: they must be beside each other, for which the node of the first one must have
    # room.
    files = {file: _BESIDE in file.read_text(encoding="utf-8") for file in folder.glob("*.yaml")}
    for file in sorted(files, key=files.__getitem__, reverse=True):
        cluster.kubectl("apply", scope, f"--filename={file}")
        if files[file]:
            wait_for_pods(cluster, namespace, *(each["metadata"]["name"] for each in pods()))
    wait_until(lambda: len(pods()) == len(asked), PATIENCE, "all pods to be made")
    wait_for_pods(cluster, namespace, *(each["metadata"]["name"] for each in pods()))
    found = pods()
    assert Counter(map(maker, found)) == Counter(made for made, _ in asked)
    for pod in found:
        assert_has(world.driver, pod, dict(asked)[maker(pod)], world.holds(pod))
    beside = [each["spec"]["nodeName"] for each in found if _BESIDE in labels(each)]
    assert len(set(beside)) <= 1


def test_the_nodes_cards_are_counted(world: World, namespace: str) -> None:
    """Who asks for the count is counted, and gets no card."""
    driver = world.driver

    def counted() -> dict[str, tuple[str, ...]]:
        return {node: counts(driver, node) for node in driver.machines}

    wanted = {node: (str(CARDS[name]),) * 2 for node, name in driver.machines.items()}
    wait_until(lambda: counted() == wanted, PATIENCE, f"{wanted}", seen=lambda: str(counted()))
    node = max(wanted)
    everything = {RESOURCE_COUNT: CARDS[driver.machines[node]]}
    chosen = {"nodeSelector": {"kubernetes.io/hostname": node}}
    driver.cluster.apply(asking("counted", namespace, everything, **chosen))
    wait_for_pods(driver.cluster, namespace, "counted")
    assert look(driver, namespace, "counted", "c0") == Seen(frozenset(), frozenset())


def counts(driver: Installation, node: str) -> tuple[str, ...]:
    """How many cards the node's capacity has, and what is allocatable of it."""
    status = driver.cluster.get("node", node)["status"]
    return tuple(status[each].get(RESOURCE_COUNT, "") for each in ("capacity", "allocatable"))


def maker(pod: Object) -> str:
    """The name of the manifest: the Deployment's, which its label repeats, or the pod's own."""
    return str(labels(pod).get("app", pod["metadata"]["name"]))


def labels(pod: Object) -> Object:
    found: Object = pod["metadata"].get("labels", {})
    return found
