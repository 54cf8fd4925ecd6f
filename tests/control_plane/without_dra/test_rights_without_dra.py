"""The chart's accounts where there is no DRA: what RBAC cannot say, admission policies do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dra_driver.device_plugin.node_annotations import (
    DRS_CAPACITY,
    GCUSHARE,
    SHARED_CAPACITY,
    node_metadata,
)
from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import Forbidden, KubeError
from dra_driver.kube.node_metadata import apply_metadata
from dra_driver.kube.resources import BINDINGS, NODES, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import ANNOTATION_ASSIGNED, ANNOTATION_CARDS, DRIVER, FIELD_MANAGER
from tests.chart.helm import RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE, temporary_namespace
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.attempts import Stage, is_refused
from tests.control_plane.driver import Driver
from tests.unit.device_plugin.test_node_annotations import view

pytestmark = pytest.mark.control_plane

OWN, OTHER = "rights-own", "rights-other"
CARDS: Final = {ANNOTATION_CARDS: "{}", SHARED_CAPACITY: "{}", DRS_CAPACITY: "{}"}


def told(**metadata: object) -> Object:
    return {"metadata": metadata}


@pytest.fixture(scope="module", autouse=True)
def nodes(control_plane: Cluster, api: Client) -> Iterator[None]:
    for name in (OWN, OTHER):
        control_plane.add_node_object(name, {"rack": "one"}, {"cpu": "4"}, {"rack": "one"})
    yield
    for name in (OWN, OTHER):
        api.delete(NODES, name)


@pytest.fixture(scope="module")
def namespace(control_plane: Cluster) -> Iterator[str]:
    with temporary_namespace(control_plane, "rights") as name:
        yield name


@pytest.fixture(scope="module")
def user(api: Client, namespace: str) -> str:
    """The name of a pod of somebody's."""
    made = pod("user", namespace, schedulingGates=[{"name": "a.example/wait"}])
    made["metadata"]["annotations"] = {"theirs": "1"}
    api.create(PODS, made)
    return "user"


def bind(client: Client, namespace: str, pod: str, **metadata: object) -> object:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": namespace, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": OTHER},
    }
    return client.create(BINDINGS, body, dry_run=True)


@pytest.fixture(scope="module")
def agent(
    driver: Driver, nodes: None, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """Our client, as an agent's pod on the node OWN, once the policies for it are heeded."""
    kubeconfig = driver.kubeconfig("agent", tmp_path_factory.mktemp("agent") / "agent", node=OWN)
    with closing(connect(kubeconfig, effects=Effects(), user_agent="tests/1")) as client:
        tried = told(annotations={"tried": "1"})
        wait_until_heeded(
            nodes=lambda: client.patch(NODES, OTHER, tried, subresource="status"),
            events=lambda: Stage(client, namespace, OWN, OTHER).report("anybody"),
        )
        yield client


@pytest.fixture(scope="module")
def controller(controller_kubeconfig: Path, namespace: str, user: str) -> Iterator[Client]:
    """Once the policies for it are heeded."""
    with closing(connect(controller_kubeconfig, effects=Effects(), user_agent="tests/1")) as client:
        tried = {"annotations": {"tried": "1"}}
        wait_until_heeded(
            pods=lambda: client.patch(PODS, user, told(**tried), namespace=namespace),
            bindings=lambda: bind(client, namespace, user, **tried),
            events=lambda: Stage(client, namespace, OWN, OTHER).report("anybody"),
        )
        yield client


def wait_until_heeded(**trials: Callable[[], object]) -> None:
    for kind, trial in trials.items():
        wait_until(partial(is_refused, trial), PATIENCE, f"the policy for {kind} to be heeded")


def test_the_agent_tells_of_its_node(agent: Client) -> None:
    body = told(annotations=CARDS, labels={GCUSHARE: "true"})
    written = agent.patch(NODES, OWN, body, subresource="status")["metadata"]
    assert written["annotations"].items() >= CARDS.items()
    assert written["labels"][GCUSHARE] == "true"


@pytest.mark.parametrize("theirs", [False, True], ids=["ours alone", "somebody else's, too"])
def test_the_label_goes_with_the_cards(control_plane: Cluster, agent: Client, theirs: bool) -> None:
    """Unless somebody else has put it there before."""
    control_plane.kubectl("label", "node", OWN, f"{GCUSHARE}-")
    if theirs:
        control_plane.kubectl("label", "node", OWN, f"{GCUSHARE}=true")
    apply_metadata(agent, OWN, node_metadata(view(), ()) or {}, FIELD_MANAGER)
    assert GCUSHARE in agent.get(NODES, OWN)["metadata"]["labels"]
    apply_metadata(agent, OWN, node_metadata(view(cards=()), ()) or {}, FIELD_MANAGER)
    assert (GCUSHARE in agent.get(NODES, OWN)["metadata"]["labels"]) is theirs


@pytest.mark.parametrize(
    ("node", "body", "words"),
    [
        pytest.param(OTHER, told(annotations=CARDS), f"on node '{OWN}' may not", id="another's"),
        pytest.param(OWN, told(annotations={"rack": "two"}), "writes annotations", id="changed"),
        pytest.param(OWN, told(annotations={"rack": None}), "writes annotations", id="removed"),
        pytest.param(OWN, told(annotations={"new": "1"}), "writes annotations", id="added"),
        pytest.param(OWN, told(labels={"rack": "two"}), "writes labels", id="label changed"),
        pytest.param(OWN, told(labels={"rack": None}), "writes labels", id="label removed"),
        pytest.param(OWN, told(labels={"new": "1"}), "writes labels", id="label added"),
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


def test_the_controller_writes_what_a_pod_was_given(
    controller: Client, namespace: str, user: str
) -> None:
    given = {ANNOTATION_ASSIGNED: "0000:0d:00.0", "enflame.com/gcu-assigned": "true"}
    body = told(annotations={**given, "assigned-containers": "{}"})
    written = controller.patch(PODS, user, body, namespace=namespace)
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
    controller: Client, namespace: str, user: str, body: Object | list[Object], words: str
) -> None:
    kind = PatchType.JSON if isinstance(body, list) else PatchType.MERGE
    with pytest.raises(KubeError, match=words):
        controller.patch(PODS, user, body, namespace=namespace, patch_type=kind)


@pytest.fixture
def scheduler(control_plane: Cluster) -> Iterator[None]:
    """The controller's account has the rights of the chart's kube-scheduler, too."""
    name, role = "rights-scheduler", "system:kube-scheduler"
    bound = (f"--clusterrole={role}", f"--serviceaccount={DRIVER_NAMESPACE}:{RELEASE}-controller")
    control_plane.kubectl("create", "clusterrolebinding", name, *bound)
    yield
    control_plane.kubectl("delete", "clusterrolebinding", name)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(told(annotations={"theirs": "2"}), "writes annotations", id="annotation"),
        pytest.param(told(labels={"app": "other"}), REFUSED, id="label"),
    ],
)
@pytest.mark.usefixtures("scheduler")
def test_a_pods_status_is_no_way_to_its_metadata(
    controller: Client, namespace: str, user: str, body: Object, words: str
) -> None:
    def tried() -> object:
        return controller.patch(PODS, user, body, namespace=namespace, subresource="status")

    wait_until(lambda: not is_forbidden(tried), PATIENCE, "the role to be heeded")
    with pytest.raises(KubeError, match=words):
        tried()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Tried"}
    status: Object = {"status": {"conditions": [condition]}}
    controller.patch(
        PODS,
        user,
        status,
        namespace=namespace,
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
    controller: Client, namespace: str, user: str, metadata: dict[str, object], words: str
) -> None:
    with pytest.raises(KubeError, match=words):
        bind(controller, namespace, user, **metadata)


def test_the_controller_binds_with_cards(api: Client, controller: Client, namespace: str) -> None:
    api.create(PODS, pod("waits", namespace, schedulerName="nobody"))
    bind(controller, namespace, "waits", annotations={ANNOTATION_ASSIGNED: "0000:0d:00.0"})


@pytest.mark.parametrize("program", ["agent", "controller"])
def test_a_program_reports_in_its_own_name(
    agent: Client, controller: Client, namespace: str, program: str
) -> None:
    client = {"agent": agent, "controller": controller}[program]
    stage = Stage(client, namespace, OWN, OTHER)
    stage.report(f"{DRIVER}/{program}")
    with pytest.raises(KubeError, match=rf"has the reportingController {DRIVER}/{program}"):
        stage.report("kubelet")
