"""The chart's accounts where there is no DRA: what RBAC cannot say, admission policies do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dra_driver.device_plugin.node_annotations import DRS_CAPACITY, GCUSHARE, SHARED_CAPACITY
from dra_driver.device_plugin.node_annotator import NodeAnnotator
from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import Forbidden, KubeError
from dra_driver.kube.resources import BINDINGS, NODES, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import ANNOTATION_ASSIGNED, ANNOTATION_CARDS, DRIVER
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_dra
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.attempts import Stage, is_refused
from tests.control_plane.driver import NOWHERE, Driver
from tests.unit.device_plugin.test_node_annotations import view

pytestmark = pytest.mark.control_plane

OWN, OTHER = "rights-own", "rights-other"
NAMESPACE: Final = "default"
CARDS: Final = {ANNOTATION_CARDS: "{}", SHARED_CAPACITY: "{}", DRS_CAPACITY: "{}"}


def told(**metadata: object) -> Object:
    return {"metadata": metadata}


@pytest.fixture(scope="module")
def old_control_plane() -> Iterator[Cluster]:
    settings = Settings(
        f"rights-{os.getpid()}", kubernetes=chosen_without_dra(), keep_nodes_ready=True
    )
    found = Cluster.up(settings, owner=own_process())
    try:
        for name in (OWN, OTHER):
            found.add_node_object(name, labels={"rack": "one"}, capacity={"cpu": "4"})
        found.kubectl("annotate", "node", "--all", "rack=one")
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def user(old_control_plane: Cluster) -> str:
    """The name of a pod of somebody's."""
    made = pod("user", NAMESPACE, schedulingGates=[{"name": "a.example/wait"}])
    made["metadata"]["annotations"] = {"theirs": "1"}
    old_control_plane.apply(made)
    return "user"


def bind(client: Client, pod: str, **metadata: object) -> object:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": NAMESPACE, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": OTHER},
    }
    return client.create(BINDINGS, body, dry_run=True)


@pytest.fixture(scope="module")
def driver(
    old_control_plane: Cluster, user: str, tmp_path_factory: pytest.TempPathFactory
) -> Driver:
    """The chart, once its policies are heeded."""
    values = tmp_path_factory.mktemp("values") / "values.json"
    values.write_text(json.dumps({"agent": NOWHERE, "controller": NOWHERE}))
    scope = (f"--namespace={DRIVER_NAMESPACE}", "--create-namespace")
    old_control_plane.helm("install", RELEASE, str(CHART), *scope, f"--values={values}")
    made = Driver(old_control_plane)

    agent, controller = (
        connect(made.kubeconfig(each, values.parent / each), effects=Effects(), user_agent="tests")
        for each in ("agent", "controller")
    )
    tried = told(annotations={"tried": "1"})
    trials: dict[str, Callable[[], object]] = {
        "nodes": lambda: agent.patch(NODES, OTHER, tried, subresource="status"),
        "events": lambda: Stage(agent, NAMESPACE, OWN, OTHER).report("anybody"),
        "pods": lambda: controller.patch(PODS, user, tried, namespace=NAMESPACE),
        "bindings": lambda: bind(controller, user, annotations={"tried": "1"}),
    }
    for kind, trial in trials.items():
        wait_until(partial(is_refused, trial), PATIENCE, f"the policy for {kind} to be heeded")
    for client in (agent, controller):
        client.close()
    return made


@pytest.fixture
def agent(driver: Driver, tmp_path: Path) -> Iterator[Client]:
    """Our client, as an agent's pod on the node OWN."""
    kubeconfig = driver.kubeconfig("agent", tmp_path / "agent", node=OWN)
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    yield client
    client.close()


@pytest.fixture
def controller(driver: Driver, tmp_path: Path) -> Iterator[Client]:
    client = connect(
        driver.kubeconfig("controller", tmp_path / "controller"),
        effects=Effects(),
        user_agent="tests/1",
    )
    yield client
    client.close()


def test_the_agent_tells_of_its_node(agent: Client) -> None:
    body = told(annotations=CARDS, labels={GCUSHARE: "true"})
    written = agent.patch(NODES, OWN, body, subresource="status")["metadata"]
    assert written["annotations"].items() >= CARDS.items()
    assert written["labels"][GCUSHARE] == "true"


@pytest.mark.parametrize("theirs", [False, True], ids=["ours alone", "somebody else's, too"])
def test_the_label_goes_with_the_cards(
    old_control_plane: Cluster, agent: Client, theirs: bool
) -> None:
    """Unless somebody else has put it there before."""
    old_control_plane.kubectl("label", "node", OWN, f"{GCUSHARE}-")
    if theirs:
        old_control_plane.kubectl("label", "node", OWN, f"{GCUSHARE}=true")
    views = iter((view(), view(cards=())))
    reporter = NodeAnnotator(
        agent, OWN, view=lambda: next(views), recorded=lambda: (), clock=time.monotonic
    )
    reporter.run_once()
    assert GCUSHARE in agent.get(NODES, OWN)["metadata"]["labels"]
    reporter.run_once()
    assert (GCUSHARE in agent.get(NODES, OWN)["metadata"]["labels"]) is theirs


@pytest.mark.parametrize(
    ("node", "body", "words"),
    [
        pytest.param(OTHER, told(annotations=CARDS), f"on node '{OWN}' may not", id="another's"),
        pytest.param(OWN, told(annotations={"rack": "two"}), "writes annotations", id="changed"),
        pytest.param(OWN, told(annotations={"rack": None}), "writes annotations", id="removed"),
        pytest.param(OWN, told(annotations={"new": "1"}), "writes annotations", id="added"),
        pytest.param(OWN, told(labels={"rack": "two"}), "writes the label", id="label changed"),
        pytest.param(OWN, told(labels={"rack": None}), "writes the label", id="label removed"),
        pytest.param(OWN, told(labels={"new": "1"}), "writes the label", id="label added"),
        pytest.param(OWN, {"status": {"capacity": {"cpu": "9"}}}, "of its cards", id="status"),
        pytest.param(OWN, told(finalizers=["a.example/b"]), "of its cards", id="finalizers"),
    ],
)
def test_the_agent_writes_nothing_else_of_nodes(
    agent: Client, node: str, body: Object, words: str
) -> None:
    with pytest.raises(KubeError, match=words):
        agent.patch(NODES, node, body, subresource="status")


def test_a_node_is_not_written_past_its_status(agent: Client) -> None:
    with pytest.raises(Forbidden):
        agent.patch(NODES, OWN, told(annotations=CARDS))


def test_a_token_that_is_bound_to_no_node_tells_nothing(driver: Driver, tmp_path: Path) -> None:
    kubeconfig = driver.kubeconfig("agent", tmp_path / "agent")
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    with pytest.raises(KubeError, match="on node '' may not write"):
        client.patch(NODES, OWN, told(annotations=CARDS), subresource="status")
    client.close()


def test_the_controller_writes_what_a_pod_was_given(controller: Client, user: str) -> None:
    given = {ANNOTATION_ASSIGNED: "0000:0d:00.0", "enflame.com/gcu-assigned": "true"}
    body = told(annotations={**given, "assigned-containers": "{}"})
    written = controller.patch(PODS, user, body, namespace=NAMESPACE)
    assert written["metadata"]["annotations"].items() >= given.items()


IMAGE: Final = [{"op": "replace", "path": "/spec/containers/0/image", "value": "other"}]
REFUSED: Final = "neither a pod.s containers nor"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(told(annotations={"theirs": "2"}), "writes annotations", id="annotation"),
        pytest.param(told(annotations={"theirs": None}), "writes annotations", id="removed"),
        pytest.param(told(labels={"app": "other"}), REFUSED, id="label"),
        pytest.param(told(finalizers=["a.example/b"]), REFUSED, id="finalizers"),
        pytest.param({"spec": {"schedulingGates": None}}, "lifts its own", id="another's gate"),
        pytest.param(IMAGE, REFUSED, id="image"),
        pytest.param({"spec": {"activeDeadlineSeconds": 1}}, REFUSED, id="deadline"),
    ],
)
def test_the_controller_writes_nothing_else_of_pods(
    controller: Client, user: str, body: Object | list[Object], words: str
) -> None:
    kind = PatchType.JSON if isinstance(body, list) else PatchType.MERGE
    with pytest.raises(KubeError, match=words):
        controller.patch(PODS, user, body, namespace=NAMESPACE, patch_type=kind)


@pytest.fixture
def scheduler(old_control_plane: Cluster) -> Iterator[None]:
    """The controller's account has the rights of the chart's kube-scheduler, too."""
    name, role = "rights-scheduler", "system:kube-scheduler"
    bound = (f"--clusterrole={role}", f"--serviceaccount={DRIVER_NAMESPACE}:{RELEASE}-controller")
    old_control_plane.kubectl("create", "clusterrolebinding", name, *bound)
    yield
    old_control_plane.kubectl("delete", "clusterrolebinding", name)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(told(annotations={"theirs": "2"}), "writes annotations", id="annotation"),
        pytest.param(told(labels={"app": "other"}), REFUSED, id="label"),
    ],
)
def test_a_pods_status_is_no_way_to_its_metadata(
    controller: Client, user: str, scheduler: None, body: Object, words: str
) -> None:
    def tried() -> object:
        return controller.patch(PODS, user, body, namespace=NAMESPACE, subresource="status")

    wait_until(lambda: not is_forbidden(tried), PATIENCE, "the role to be heeded")
    with pytest.raises(KubeError, match=words):
        tried()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Tried"}
    status: Object = {"status": {"conditions": [condition]}}
    controller.patch(
        PODS,
        user,
        status,
        namespace=NAMESPACE,
        patch_type=PatchType.STRATEGIC_MERGE,
        subresource="status",
    )


def is_forbidden(attempt: Callable[[], object]) -> bool:
    """Whether RBAC refuses it."""
    try:
        attempt()
    except Forbidden as error:
        return "cannot patch resource" in str(error)
    except KubeError:
        return False
    return False


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        pytest.param(
            {"annotations": {"theirs": "2"}}, "annotations about GCUs only", id="annotation"
        ),
        pytest.param({"labels": {"app": "other"}}, "gives pods no labels", id="label"),
    ],
)
def test_the_controller_binds_with_nothing_else(
    controller: Client, user: str, metadata: dict[str, object], words: str
) -> None:
    with pytest.raises(KubeError, match=words):
        bind(controller, user, **metadata)


def test_the_controller_binds_with_cards(old_control_plane: Cluster, controller: Client) -> None:
    old_control_plane.apply(pod("waits", NAMESPACE, schedulerName="nobody"))
    bind(controller, "waits", annotations={ANNOTATION_ASSIGNED: "0000:0d:00.0"})


@pytest.mark.parametrize("program", ["agent", "controller"])
def test_a_program_reports_in_its_own_name(agent: Client, controller: Client, program: str) -> None:
    client = {"agent": agent, "controller": controller}[program]
    stage = Stage(client, NAMESPACE, OWN, OTHER)
    stage.report(f"{DRIVER}/{program}")
    with pytest.raises(KubeError, match=rf"has the reportingController {DRIVER}/{program}"):
        stage.report("kubelet")
