"""The extender beside a real kube-scheduler of a Kubernetes without DRA, in the chart's rights."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.extender.service import PREFIX
from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ANNOTATION_ASKED,
    ANNOTATION_ASSIGNED,
    ANNOTATION_ISOLATION,
    RESOURCE_CORE,
    RESOURCE_MEMORY,
)
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.legacy import asking, refusal
from tests.control_plane.without_dra.extender_world import (
    NAME,
    SCHEDULER,
    SLICES,
    ExtenderWorld,
    card,
    extender_world,
)
from tests.unit.asks.cases import REFUSED_MEASURES

pytestmark = pytest.mark.control_plane

WHOLE, SHARED, DRS = (RESOURCES[mode] for mode in (Mode.WHOLE, Mode.SHARED, Mode.DRS))
MIRROR = "kubernetes.io/config.mirror"
ISSUED = "gcu.enflame.com/issued"


@pytest.fixture(scope="module")
def running(
    control_plane: Cluster,
    api: Client,
    controller_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ExtenderWorld]:
    folder = tmp_path_factory.mktemp("extender")
    with extender_world(control_plane, api, controller_kubeconfig, folder) as world:
        yield world


@pytest.fixture
def world(running: ExtenderWorld) -> Iterator[ExtenderWorld]:
    yield running
    assert running.extender is not None
    print(running.extender.log())
    nodes = [each["metadata"]["name"] for each in running.cluster.get("nodes")["items"]]
    if nodes:
        running.cluster.kubectl("delete", "node", *nodes)


def test_a_pod_goes_where_one_card_has_room(world: ExtenderWorld, namespace: str) -> None:
    world.node("scattered", card(1, Mode.SHARED, 3), card(2, Mode.SHARED, 3))
    world.node("free", card(1), card(2))
    world.create(namespace, "four", {SHARED: 4})
    assert world.bound(namespace, "four") == "free"
    annotations = world.pod(namespace, "four")["metadata"]["annotations"]
    assert annotations[ANNOTATION_ASSIGNED] == "0000:01:00.0"
    assert annotations["enflame.com/gcu-assigned-minor"] == "1"
    assert annotations["enflame.com/gcu-assigned"] == "false"
    held = (Hold(world.pod(namespace, "four")["metadata"]["uid"], "main", 4),)
    world.tell("free", replace(card(1, Mode.SHARED), held=held), card(2))
    wait_until(lambda: world.is_assigned(namespace, "four"), PATIENCE, "the pod to be told")
    # Best fit: not the free card, nor the other node, where less would be left.
    world.create(namespace, "two", {SHARED: 2})
    assert world.bound(namespace, "two") == "free"


@pytest.mark.parametrize("stays", [False, True], ids=["of another pod", "of none, for good"])
def test_a_mirror_that_a_tenant_makes_takes_nobody_the_node(
    world: ExtenderWorld, namespace: str, stays: bool
) -> None:
    """The API server takes it of anybody, and a finalizer keeps it."""
    for name in ("other", "mirror"):
        made = pod(name, namespace, nodeName="only", automountServiceAccountToken=False)
        made["spec"]["containers"][0]["resources"] = {"limits": {SHARED: "1"}}
        if name == "mirror":
            uid = world.pod(namespace, "other")["metadata"]["uid"]
            made["metadata"]["annotations"] = {MIRROR: secrets.token_hex(16) if stays else uid}
            made["metadata"]["finalizers"] = ["example.com/stay"] if stays else []
        world.api.create(PODS, made)
    uid = world.pod(namespace, "other")["metadata"]["uid"]
    world.node("only", replace(card(1, Mode.SHARED), held=(Hold(uid, "main", 1),)))
    scope = ("--namespace", namespace, "--force", "--grace-period=0", "--wait=false")
    world.cluster.kubectl("delete", "pod", "mirror", *scope)
    try:
        world.create(namespace, "next", {SHARED: 4})
        assert world.bound(namespace, "next") == "only"
    finally:
        if stays:
            world.api.patch(PODS, "mirror", {"metadata": {"finalizers": None}}, namespace=namespace)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({SHARED: 4}, "2 cards: 1 in DRS mode, 1 with fewer than 4 free slices; 1 requested"),
        ({WHOLE: 1}, "2 cards: 1 in DRS mode, 1 in shared mode; 1 requested"),
        ({DRS: 2}, "no profile has size 2; those of its cards are 1g.6gb, 3g.20gb, 6g.40gb"),
    ],
    ids=["no card with room", "every card in another mode", "no such profile"],
)
def test_a_pod_that_waits_says_why(
    world: ExtenderWorld, namespace: str, limits: dict[str, int], words: str
) -> None:
    world.node("busy", card(1, Mode.SHARED, 3), card(2, Mode.DRS, 3))
    world.create(namespace, "waits", limits)
    world.waits_because(namespace, "waits", words)
    assert not world.pod(namespace, "waits")["spec"].get("nodeName")


def test_a_pod_that_waits_is_tried_again_when_its_node_tells(
    world: ExtenderWorld, namespace: str
) -> None:
    """Nothing but an annotation changes: kube-scheduler itself would wait for five minutes."""
    world.node("busy", card(1, Mode.SHARED, 3, 3))
    world.create(namespace, "waits", {SHARED: 2})
    world.waits_because(namespace, "waits", "1 card: 1 with fewer than 2 free slices")
    world.tell("busy", card(1))
    assert world.bound(namespace, "waits") == "busy"


def test_a_burst_overfills_no_card(world: ExtenderWorld, namespace: str) -> None:
    """As many slices as there are, in sizes that pack: every pod finds its place."""
    for name in ("one", "two"):
        world.node(name, *(card(n) for n in range(1, 5)))
    draw = random.Random(7)
    sizes = [size for _ in range(8) for size in draw.choice(([6], [4, 2], [3, 3], [2, 2, 2]))]
    draw.shuffle(sizes)
    names = [f"pod-{n:02}" for n in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        world.create(namespace, name, {SHARED: size})

    def settled() -> bool:
        waiting = [n for n in names if not world.pod(namespace, n)["spec"].get("nodeName")]
        return all(world.reason(namespace, name) for name in waiting)

    wait_until(settled, PATIENCE, "every pod to be bound or refused")
    taken = world.taken(namespace, names)
    assert max(taken.values()) <= SLICES
    # Online packing can strand some; with best fit little.
    assert sum(taken.values()) >= 0.85 * sum(sizes)


def test_others_are_preempted_for_processors_and_not_for_a_card(
    world: ExtenderWorld, namespace: str
) -> None:
    """By the node's counts alone, two of three pods would have to go for four slices."""
    urgent = {"priorityClassName": "system-node-critical"}
    world.node("full", card(1))
    names = [f"holds-{n}" for n in range(3)]
    for name in names:
        world.create(namespace, name, {SHARED: 2})
        world.bound(namespace, name)
    world.create(namespace, "urgent", {SHARED: 4}, **urgent)
    world.waits_because(namespace, "urgent", "no candidate node for preemption")
    assert not any(world.is_ending(namespace, name) for name in names)
    world.api.delete(PODS, "urgent", namespace=namespace)  # it would take the next node
    world.node("busy", card(1))
    world.create(namespace, "computes", {"cpu": 60}, nodeSelector={"machine": "busy"})
    world.bound(namespace, "computes")
    world.create(namespace, "both", {SHARED: 4, "cpu": 8}, **urgent)
    wait_until(
        lambda: world.is_ending(namespace, "computes"),
        PATIENCE,
        "the pod without a card to be preempted",
        seen=lambda: world.reason(namespace, "both"),
    )
    assert not any(world.is_ending(namespace, name) for name in names)


def test_the_extender_killed_in_a_burst_forgets_nothing(
    world: ExtenderWorld, namespace: str
) -> None:
    world.node("one", card(1), card(2))
    names = [f"pod-{n}" for n in range(6)]
    for n, name in enumerate(names):
        world.create(namespace, name, {SHARED: 2})
        if n == 2:
            assert world.extender is not None
            world.extender.kill()
            world.start_extender()
    for name in names:
        world.bound(namespace, name)
    assert sorted(world.taken(namespace, names).values()) == [SLICES, SLICES]


def test_while_it_is_down_pods_wait_with_the_reason_and_others_do_not(
    world: ExtenderWorld, namespace: str
) -> None:
    world.node("one", card(1))
    world.end_extender()
    try:
        world.create(namespace, "asks", {SHARED: 1})
        world.create(namespace, "asks-nothing", {})
        assert world.bound(namespace, "asks-nothing") == "one"
        world.waits_because(namespace, "asks", "connection refused")
        world.waits_because(namespace, "asks", f'{PREFIX}/filter": ')
    finally:
        world.start_extender()
    assert world.bound(namespace, "asks") == "one"


@pytest.mark.matrix
def test_while_it_hangs_pods_wait_with_the_reason_and_others_do_not(
    world: ExtenderWorld, namespace: str
) -> None:
    """Of the two that wait one has room, and no call that is answered late gives it to both."""
    world.node("one", card(1), card(2, Mode.DRS, 3))
    world.create(namespace, "before", {SHARED: 3})
    world.bound(namespace, "before")
    waiting = ("asks", "asks-too")
    with world.hanging():
        for name in waiting:
            world.create(namespace, name, {SHARED: 3})
        world.waits_because(namespace, "asks", f'{PREFIX}/filter": ')
        world.waits_because(namespace, "asks", "Client.Timeout exceeded")
        world.create(namespace, "asks-nothing", {})
        assert world.bound(namespace, "asks-nothing") == "one"
        assert not any(world.pod(namespace, name)["spec"].get("nodeName") for name in waiting)
    full = "1 in DRS mode, 1 with fewer than 3 free slices"
    refused = wait_until(
        lambda: [name for name in waiting if full in world.reason(namespace, name)],
        PATIENCE,
        "one to be refused",
        seen=lambda: str([world.reason(namespace, name) for name in waiting]),
    )
    [bound] = set(waiting) - set(refused)
    assert world.bound(namespace, bound) == "one"
    assert [*world.taken(namespace, ("before", *waiting)).values()] == [SLICES]


@pytest.mark.matrix
def test_an_upgrade_renews_certificates_that_are_older_than_a_month(
    world: ExtenderWorld, namespace: str
) -> None:
    """kube-scheduler, which goes on with those that it has read, is served before and after."""
    names = [f"{NAME}{each}" for each in ("", "-client", "-authority")]
    ours, theirs, authority = names

    def data() -> dict[str, Object]:
        return {name: world.secret(name)["data"] for name in names}

    first = data()
    world.upgrade()
    assert data() == first
    scope = ("--namespace", DRIVER_NAMESPACE, "--overwrite", f"{ISSUED}=2026-01-02")
    world.cluster.kubectl("annotate", "secrets", *names, *scope)
    world.upgrade()
    renewed = data()
    assert renewed[authority] == first[authority]
    for name in (ours, theirs):
        assert renewed[name]["ca.crt"] == first[name]["ca.crt"]
        assert renewed[name]["tls.crt"] != first[name]["tls.crt"]
    issued = {world.secret(name)["metadata"]["annotations"][ISSUED] for name in names}
    assert len(issued) == 1
    assert issued != {"2026-01-02"}
    world.cluster.kubectl("delete", "secret", "--namespace", DRIVER_NAMESPACE, theirs)
    world.upgrade()  # on the day of issue
    again = data()
    assert again[authority] == first[authority]
    assert again[theirs]["tls.crt"] not in {renewed[theirs]["tls.crt"], None}
    world.node("one", card(1))
    world.create(namespace, "after", {SHARED: 2})
    assert world.bound(namespace, "after") == "one"


def test_memory_and_compute_become_a_part_of_a_card(world: ExtenderWorld, namespace: str) -> None:
    big = replace(card(1), model="L600", profiles=("1g.22gb", "3g.68gb"), memory_mib=144_000)
    limits = {RESOURCE_MEMORY: "20480", RESOURCE_CORE: "10"}
    pods = [asking(namespace, limits, name=name, schedulerName=SCHEDULER) for name in "abcd"]
    pods[1]["metadata"]["annotations"] = {ANNOTATION_ISOLATION: "best-effort"}
    with world.called_webhook():
        world.node("big", big)
        world.node("small", card(1), card(2))
        for made, node in zip(pods[2:], ("big", "small"), strict=True):
            made["spec"]["nodeSelector"] = {"machine": node}
            wait_until(lambda: not refusal(world.api, made), PATIENCE, f"{node} to be known")  # noqa: B023
        found = [world.api.create(PODS, each) for each in pods]
    given = [each["spec"]["containers"][0]["resources"]["limits"] for each in found]
    assert given == [{DRS: "3"}, {SHARED: "3"}, {DRS: "1"}, {DRS: "3"}]
    assert json.loads(found[0]["metadata"]["annotations"][ANNOTATION_ASKED]) == {"c0": limits}
    assert [world.bound(namespace, name) for name in "cd"] == ["big", "small"]


def test_limits_that_no_part_serves_are_refused(world: ExtenderWorld, namespace: str) -> None:
    with world.called_webhook():
        for case in REFUSED_MEASURES.values():
            assert case.words in refusal(world.api, case.pod(namespace))
