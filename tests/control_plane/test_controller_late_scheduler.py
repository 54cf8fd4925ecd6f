"""kube-scheduler hears of claims three seconds late: no pod is bound apart from its claim.

It decides on allocations that are gone by then, and its reservation is written into the allocation
that is there (docs/dev/controller.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import reserved_for
from tests.cluster.waiting import wait_until
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.held_requests import held_scheduler
from tests.control_plane.objects import (
    IGNORES_PORTS,
    TEMPLATES,
    node_of,
    pod_with,
    template,
    whole,
    with_port,
)

pytestmark = pytest.mark.control_plane

LATE: Final = 3.0
QUIET: Final = 12.0
"""Seconds: whoever waits for it has not gone on at once."""
SOON: Final = 25.0


@pytest.fixture
def nodes(scene: Scene, start_controller: Start, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two nodes. The controller tries the first one first, and kube-scheduler is late."""
    first = scene.machines.add([whole(0)])
    second = scene.machines.add([whole(0), whole(1)])
    start_controller(
        f"--quiet-time={QUIET}", "--node-retry=600", "--node-retry-longest=600", IGNORES_PORTS
    ).wait_for_log("begins")
    scene.api.create(TEMPLATES, template("card", scene.namespace))
    late = {RESOURCE_CLAIMS.path(): LATE}
    with held_scheduler(scene.cluster, tmp_path, late=late):
        yield first, second


def block(scene: Scene, node: str) -> None:
    """A pod on the node has the port that others ask for."""
    blocker = pod_with("blocker", scene.namespace, nodeName=node)
    scene.api.create(PODS, with_port(blocker))


def start(scene: Scene) -> str:
    """A pod with the port and a claim from a template; returns the claim's name when it is
    allocated."""
    made = pod_with("user", scene.namespace, template="card")
    scene.api.create(PODS, with_port(made))

    def claim_name() -> str:
        statuses = scene.eyes.pod("user").get("status", {}).get("resourceClaimStatuses") or ()
        return next((each["resourceClaimName"] for each in statuses), "")

    name = wait_until(claim_name, SOON, "the claim")
    scene.eyes.allocated(name)
    return name


def check(scene: Scene, since: str, user: str, node: str) -> None:
    """The pod is on the node, and never had a reservation on another one."""
    writes = scene.writes_to_claims(since)
    reserved = [each for each in writes if reserved_for(each)]
    uid = scene.eyes.pod(user)["metadata"]["uid"]
    mine = [each for each in reserved if uid in {user["uid"] for user in reserved_for(each)}]
    assert {node_of(each) for each in mine} == {node}


def version(scene: Scene) -> str:
    return scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).resource_version


def test_it_goes_on_when_kube_scheduler_has_seen_the_release(
    scene: Scene, nodes: tuple[str, str]
) -> None:
    first, second = nodes
    since = version(scene)
    block(scene, first)
    assert scene.eyes.node_of(start(scene)) == first
    assert scene.eyes.bound("user", SOON) == second
    check(scene, since, "user", second)


def test_the_node_of_the_cleared_allocation_fits_before_the_release_is_seen(
    scene: Scene, nodes: tuple[str, str]
) -> None:
    """kube-scheduler binds the pod there, with the allocation that it knows. Its reservation gets a
    conflict, and the next one must not meet an allocation on the other node."""
    first, second = nodes
    since = version(scene)
    block(scene, first)
    name = start(scene)
    scene.eyes.released(name)
    scene.hands.end("blocker")
    assert scene.eyes.bound("user", SOON) == second
    check(scene, since, "user", second)


def test_somebody_else_clears_it_before_kube_scheduler_has_seen_it(
    scene: Scene, nodes: tuple[str, str]
) -> None:
    """Nothing proves that kube-scheduler has seen that: the quiet time passes."""
    since = version(scene)
    name = start(scene)
    scene.hands.clear(scene.eyes.claim(name))
    scene.eyes.stays(lambda: not scene.eyes.node_of(name), 3 * LATE, "quiet")
    check(scene, since, "user", scene.eyes.bound("user", QUIET + SOON))


@pytest.mark.parametrize("fits", [True, False], ids=["its node", "another one"])
def test_the_next_pod_with_a_named_claim(
    scene: Scene, nodes: tuple[str, str], *, fits: bool
) -> None:
    """Of a StatefulSet. kube-scheduler takes the claim for allocated, on the node of before."""
    first, second = nodes
    scene.hands.start("named")
    assert scene.eyes.bound("named", SOON) == first
    if not fits:
        scene.hands.cordon(first)
    since = version(scene)
    scene.hands.end("named")
    scene.eyes.released("named")
    scene.api.create(PODS, pod_with("named", scene.namespace, "named"))
    if fits:
        assert scene.eyes.bound("named", SOON) == first
    else:
        scene.eyes.stays(lambda: not scene.eyes.node_of("named"), 3 * LATE, "quiet")
        assert scene.eyes.bound("named", QUIET + SOON) == second
    check(scene, since, "named", first if fits else second)


def test_a_claim_that_two_pods_name(scene: Scene, nodes: tuple[str, str]) -> None:
    first, second = nodes
    since = version(scene)
    block(scene, first)
    scene.hands.start("shared", nodeSelector={"nobody": "has"})
    scene.api.create(PODS, with_port(pod_with("user", scene.namespace, "shared")))
    scene.eyes.allocated("shared")
    scene.eyes.released("shared")
    scene.eyes.stays(lambda: not scene.eyes.node_of("shared"), 3 * LATE, "quiet")
    assert scene.eyes.bound("user", QUIET + SOON) == second
    check(scene, since, "user", second)
