"""What RBAC allows the chart's accounts, and only admission policies narrow: tried with their
tokens on a real server, beside what the programs themselves do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from controller.allocating.claim_writer import ClaimWriter
from controller.leaderelection.fence import Fence
from controller.write.writer import Writer
from dra_driver.agent.slices.slices import SliceForm, desired_slices
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.devices.device import counter_sets
from dra_driver.model.devices.hidden_device import hidden_name, hide
from dra_driver.model.effects import Effects
from dra_driver.model.names import ANNOTATION_TERM, DRIVER, FINALIZER, TAINT_ADMINISTRATORS
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.attempts import Stage, is_refused, staged
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.objects import claim, resource_slice, whole
from tests.control_plane.stolen_token_cases import (
    AGENT,
    BARE,
    CONTROLLER,
    HIDDEN,
    NOT_ITS_NAME,
    OTHERS_DRIVER,
    RESERVED,
    UNTAINTED,
    Attempt,
    allocated,
    result,
)

pytestmark = pytest.mark.control_plane


def made(api: Client, namespace: str, name: str, *drivers: str, **status: object) -> None:
    """A claim that is allocated to devices of these drivers."""
    wanted = claim(name, namespace)
    wanted["metadata"] |= {
        "finalizers": [FINALIZER, "example.com/theirs"],
        "annotations": {"example.com/theirs": "1"},
    }
    stored = api.create(RESOURCE_CLAIMS, wanted)
    stored["status"] = {"allocation": allocated(*drivers), **status}
    api.replace(RESOURCE_CLAIMS, stored, subresource="status")


@pytest.fixture(scope="module")
def agent(
    control_plane: Cluster,
    api: Client,
    driver: Driver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    with staged(control_plane, api, driver, tmp_path_factory.mktemp("agent"), "agent") as stage:
        tried = partial(stage.report, "anybody")
        wait_until(partial(is_refused, tried), PATIENCE, "the policy for events to be heeded")
        yield stage


@pytest.fixture(scope="module")
def controller(
    control_plane: Cluster,
    api: Client,
    driver: Driver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("controller")
    with staged(control_plane, api, driver, folder, "controller") as stage:
        tried = partial(stage.replace_metadata, stage.own, labels={"tried": "1"})
        wait_until(partial(is_refused, tried), PATIENCE, "the policy for claims to be heeded")
        made(api, stage.namespace, "theirs", OTHERS_DRIVER)
        made(api, stage.namespace, "mixed", DRIVER, OTHERS_DRIVER)
        made(api, stage.namespace, "held", DRIVER)
        made(api, stage.namespace, "reserved", DRIVER, reservedFor=[reservation(api, stage)])
        yield stage
        for name in ("theirs", "mixed", "held", "reserved"):
            let_go(api, stage.namespace, name)


def reservation(api: Client, stage: Stage) -> Object:
    """For the pod that there is: Kubernetes takes those for others away."""
    pod = api.get(PODS, "pod", namespace=stage.namespace)
    return RESERVED | {"uid": pod["metadata"]["uid"]}


def let_go(api: Client, namespace: str, name: str) -> None:
    """So that the namespace can end."""
    found = api.get(RESOURCE_CLAIMS, name, namespace=namespace)
    found = api.replace(RESOURCE_CLAIMS, found | {"status": {}}, subresource="status")
    metadata = found["metadata"] | {"finalizers": []}
    api.replace(RESOURCE_CLAIMS, found | {"metadata": metadata})


@pytest.mark.parametrize(("attempt", "refusal"), AGENT.values(), ids=AGENT)
def test_the_agents_token_does_not(agent: Stage, attempt: Attempt, refusal: str) -> None:
    with pytest.raises(KubeError, match=refusal):
        attempt(agent)


@pytest.mark.parametrize(("attempt", "refusal"), CONTROLLER.values(), ids=CONTROLLER)
def test_the_controllers_token_does_not(controller: Stage, attempt: Attempt, refusal: str) -> None:
    with pytest.raises(KubeError, match=refusal):
        attempt(controller)


def test_the_agent_takes_no_taint_away(agent: Stage) -> None:
    published = agent.make_slice(name=f"{agent.own}-{DRIVER}-001")
    assert isinstance(published, dict)
    bare = published | {"spec": published["spec"] | {"devices": [BARE]}}
    with pytest.raises(KubeError, match=UNTAINTED):
        agent.thief.replace(RESOURCE_SLICES, bare)
    agent.delete(RESOURCE_SLICES, f"{agent.own}-{DRIVER}-001")


def test_the_agent_publishes_sixteen_slices(agent: Stage) -> None:
    for number in range(16):
        body = resource_slice(agent.own, [whole(0x0D)])
        body["metadata"]["name"] = f"{agent.own}-{DRIVER}-{number:03d}"
        agent.thief.create(RESOURCE_SLICES, body, dry_run=True)


@pytest.fixture
def kube_scheduler_allocates(
    control_plane: Cluster, agent: Stage, tmp_path: Path
) -> Iterator[None]:
    """The policy as the chart has it with ``allocator: scheduler``."""
    template, values = "policy-agent-slices.yaml", {"schedulerVersion": "1.36.3"}
    control_plane.apply(
        *rendered(control_plane, tmp_path, template, values | {"allocator": "scheduler"})
    )
    tried = partial(agent.make_slice, devices=[counted()])
    wait_until(lambda: not is_refused(tried), PATIENCE, "counters admitted")
    yield
    agent.delete(RESOURCE_SLICES, f"{agent.own}-{DRIVER}-000")
    control_plane.apply(*rendered(control_plane, tmp_path, template, values))
    wait_until(partial(is_refused, tried), PATIENCE, "counters refused")


def counted() -> Object:
    """A device with the counter of its card."""
    consumed = {"counterSet": "0000-0d-00-0", "counters": {"card": {"value": "1"}}}
    return BARE | {"consumesCounters": [consumed]}


@pytest.mark.usefixtures("kube_scheduler_allocates")
def test_where_kube_scheduler_allocates_the_agent_publishes_no_device_without_a_counter(
    agent: Stage,
) -> None:
    name = f"{agent.own}-{DRIVER}-001"
    agent.make_slice(name=name, devices=None, sharedCounters=counter_sets([counted()]))
    agent.delete(RESOURCE_SLICES, name)
    agent.make_slice(name=name, devices=[whole(0x0E)])  # in use since the controller allocated
    agent.delete(RESOURCE_SLICES, name)
    taint = {"key": TAINT_ADMINISTRATORS, "effect": "NoSchedule"}
    agent.make_slice(name=name, devices=[BARE | {"taints": [taint]}])
    agent.delete(RESOURCE_SLICES, name)
    with pytest.raises(KubeError, match="publishes devices with the counter of their card"):
        agent.make_slice(name=name, devices=[BARE])


def test_the_agent_hides_a_slice_and_deletes_it(agent: Stage) -> None:
    name = hidden_name(agent.own)
    agent.make_slice(name=name, devices=[hide(whole(0x0D))], **HIDDEN)
    agent.delete(RESOURCE_SLICES, name)


def test_programs_report_in_their_own_names(agent: Stage, controller: Stage) -> None:
    agent.report(f"{DRIVER}/agent")
    controller.report(f"{DRIVER}/controller")


def test_the_controller_does_its_work(api: Client, controller: Stage) -> None:
    """Marks a claim, protects it, allocates it, and takes it back, also from pods that reserved
    it and are bound elsewhere."""
    api.create(RESOURCE_CLAIMS, claim("worked", controller.namespace))
    fence = Fence(lambda: 0.0)
    fence.open_until(1.0, "term")
    fence.accept()
    others = Writer(controller.thief, fence, controller.thief.server_version)
    writer = ClaimWriter(controller.thief, fence, others)
    writer.write_term(controller.claim("worked"), "term")
    planned = controller.claim("worked") | {"status": {"allocation": allocated(DRIVER)}}
    assert writer.allocate([planned]).error is None
    found = controller.claim("worked")
    assert found["metadata"]["annotations"] == {ANNOTATION_TERM: "term"}
    assert found["metadata"]["finalizers"] == [FINALIZER]
    held_by = reservation(api, controller)
    found["status"] |= {"reservedFor": [held_by], "devices": [result()]}
    del found["status"]["devices"][0]["request"]
    api.replace(RESOURCE_CLAIMS, found, subresource="status")
    assert writer.release([controller.claim("worked")], "tried").error is None
    assert allocation(controller.claim("worked")) is None
    let_go(api, controller.namespace, "worked")


def test_a_node_with_a_long_name_publishes_as_others_do(
    api: Client, agent: Stage, driver: Driver, tmp_path: Path
) -> None:
    """Longer than its slices' names and its pool's may be."""
    long = ".".join(["n" * 60] * 4)
    node = api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": long}})
    kubeconfig = driver.kubeconfig("agent", tmp_path / "kubeconfig", node=long)
    thief = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    for form in SliceForm:
        [wanted] = desired_slices(node, [whole(0x0D)], 1, form)
        thief.create(RESOURCE_SLICES, wanted, dry_run=True)
    [wanted] = desired_slices(node, [whole(0x0D)], 1)
    thief.create(RESOURCE_SLICES, wanted, dry_run=True)
    others = wanted["metadata"]["name"].replace(node["metadata"]["uid"][:8], "01234567")
    renamed = wanted | {"metadata": wanted["metadata"] | {"name": others}}
    with pytest.raises(KubeError, match=NOT_ITS_NAME):
        thief.create(RESOURCE_SLICES, renamed, dry_run=True)
    thief.close()
    api.delete(NODES, long)
