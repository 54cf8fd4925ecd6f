"""The chart's accounts: each can do its work, and what it does not need is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dra_driver.agent.slices.publisher import SlicePublisher
from dra_driver.agent.slices.slices import own_slices
from dra_driver.asks.templates import template_for
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import Forbidden, KubeError
from dra_driver.kube.events import EventRecorder, EventType
from dra_driver.kube.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.conftest import events_about
from tests.control_plane.driver import Driver
from tests.control_plane.objects import claim, resource_slice, whole

pytestmark = pytest.mark.control_plane

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
)
OWN, OTHER = "rights-own", "rights-other"


@pytest.fixture(scope="module")
def nodes(control_plane: Cluster) -> Iterator[None]:
    for name in (OWN, OTHER):
        control_plane.add_node_object(name)
    yield
    control_plane.kubectl("delete", "node", OWN, OTHER)


@pytest.fixture
def agent(nodes: None, driver: Driver, tmp_path: Path) -> Iterator[Client]:
    """Our client, as an agent's pod on the node OWN."""
    kubeconfig = driver.kubeconfig("agent", tmp_path / "kubeconfig", node=OWN)
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    yield client
    client.close()


def publisher(client: Client, devices: list[Object]) -> SlicePublisher:
    made = SlicePublisher(client, OWN, devices=lambda _: devices)
    listed = client.list(RESOURCE_SLICES, field_selector=own_slices(OWN))
    made.published.on_replace(listed.items)
    return made


def test_the_agent_publishes_its_node(agent: Client) -> None:
    created = publisher(agent, [whole(0), whole(1)]).publish()
    assert created is not None
    [published] = agent.list(RESOURCE_SLICES, field_selector=own_slices(OWN)).items
    assert len(published["spec"]["devices"]) == 2
    updated = publisher(agent, [whole(0)]).publish()
    assert updated is not None
    watch = agent.watch(
        RESOURCE_SLICES,
        resource_version=published["metadata"]["resourceVersion"],
        field_selector=own_slices(OWN),
    )
    changed = next(iter(watch)).object["spec"]["devices"]
    watch.close()
    assert len(changed) == 1
    agent.delete(RESOURCE_SLICES, published["metadata"]["name"])


def test_the_agent_reads_what_a_prepare_needs(api: Client, agent: Client, namespace: str) -> None:
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod("user", namespace))
    for resource, name in ((RESOURCE_CLAIMS, "one"), (PODS, "user")):
        assert agent.get(resource, name, namespace=namespace)["kind"] == resource.kind


def test_the_agent_tells_in_events(api: Client, agent: Client, namespace: str) -> None:
    recorder = EventRecorder(agent, controller="gcu.enflame.com/agent", instance="agent-1")
    recorder.start()
    regarding = api.create(RESOURCE_CLAIMS, claim("one", namespace))
    recorder.record(regarding, kind=EventType.WARNING, reason="Tried", note="said", action="Try")
    wait_until(lambda: events_about(api, namespace, "one"), PATIENCE, "the event")
    recorder.stop()


REFUSED = f"the agent on node '{OWN}' may not write a slice of driver"


def test_the_agent_may_not_write_another_nodes_slices(api: Client, agent: Client) -> None:
    other = resource_slice(OTHER, [whole(0)])
    with pytest.raises(KubeError, match=REFUSED):
        agent.create(RESOURCE_SLICES, other)
    published = api.create(RESOURCE_SLICES, other)
    with pytest.raises(KubeError, match=REFUSED):
        agent.replace(RESOURCE_SLICES, published)
    with pytest.raises(KubeError, match=REFUSED):
        agent.delete(RESOURCE_SLICES, published["metadata"]["name"])
    api.delete(RESOURCE_SLICES, published["metadata"]["name"])


def test_the_agent_may_not_publish_for_another_driver(agent: Client) -> None:
    foreign = resource_slice(OWN, [whole(0)])
    foreign["spec"]["driver"] = "gpu.example.com"
    with pytest.raises(KubeError, match=rf"driver 'gpu\.example\.com' and node '{OWN}'"):
        agent.create(RESOURCE_SLICES, foreign)


def test_a_token_that_is_bound_to_no_node_publishes_nothing(driver: Driver, tmp_path: Path) -> None:
    kubeconfig = driver.kubeconfig("agent", tmp_path / "kubeconfig")
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    with pytest.raises(KubeError, match="on node '' may not write"):
        client.create(RESOURCE_SLICES, resource_slice(OWN, [whole(0)]), dry_run=True)
    client.close()


def test_other_accounts_slices_are_not_looked_at(api: Client, driver: Driver) -> None:
    api.create(RESOURCE_SLICES, resource_slice("any", [whole(0)]), dry_run=True)


class Access(NamedTuple):
    """Verbs on a resource, which is group/plural or group/plural/subresource; without a
    namespace, cluster-wide."""

    verbs: str
    resource: str
    namespace: str = ""


# What a stolen token would be tried for.
WANTED_BY_NOBODY = [
    Access("get list", "/secrets", DRIVER_NAMESPACE),
    Access("get list create update", "/configmaps", DRIVER_NAMESPACE),
    Access("create", "/serviceaccounts/token", DRIVER_NAMESPACE),
    Access("create update delete", "/pods", "default"),
    Access("create get", "/pods/exec", "default"),
    Access("create", "/pods/eviction", "default"),
    Access("create update patch delete", "/nodes"),
    Access("update patch", "/nodes/status"),
    Access("get create", "/nodes/proxy"),
    Access("impersonate", "/users"),
    Access("create update patch", "/events", "default"),
    Access("get list update patch delete", "events.k8s.io/events", "default"),
    Access("get create update patch", "apps/daemonsets", DRIVER_NAMESPACE),
    Access("get create update patch", "apps/deployments", DRIVER_NAMESPACE),
    Access("create update patch delete", "resource.k8s.io/deviceclasses"),
    Access("create update patch delete", "resource.k8s.io/devicetaintrules"),
    Access("create patch delete deletecollection", "resource.k8s.io/resourceclaims", "default"),
    Access("patch", "resource.k8s.io/resourceclaims/binding", "default"),
    Access(
        "update patch associated-node:update arbitrary-node:update arbitrary-node:patch",
        "resource.k8s.io/resourceclaims/driver",
        "default",
    ),
    Access("update patch deletecollection", "resource.k8s.io/resourceclaimtemplates", "default"),
    Access("patch deletecollection", "resource.k8s.io/resourceslices"),
    Access("create update escalate bind", "rbac.authorization.k8s.io/clusterroles"),
    Access("create update", "rbac.authorization.k8s.io/clusterrolebindings"),
    Access("update delete", "admissionregistration.k8s.io/validatingadmissionpolicies"),
    Access("get update delete", "coordination.k8s.io/leases", "kube-system"),
    Access("list watch patch delete", "coordination.k8s.io/leases", DRIVER_NAMESPACE),
]
# What the other program needs.
WANTED_BY_ANOTHER = {
    "agent": [
        Access("list watch", "/nodes"),
        Access("list watch patch", "/pods", "default"),
        Access("get list watch", "resource.k8s.io/deviceclasses"),
        Access("get list watch", "resource.k8s.io/devicetaintrules"),
        Access("list watch update", "resource.k8s.io/resourceclaims", "default"),
        Access("update", "resource.k8s.io/resourceclaims/status", "default"),
        Access("update", "resource.k8s.io/resourceclaims/binding", "default"),
        Access("create", "coordination.k8s.io/leases", DRIVER_NAMESPACE),
        Access("get create delete", "resource.k8s.io/resourceclaimtemplates", "default"),
    ],
    "controller": [
        Access("create update delete", "resource.k8s.io/resourceslices"),
        Access("get", "/nodes"),
        Access("patch", "resource.k8s.io/resourceclaims/status", "default"),
        Access("associated-node:patch", "resource.k8s.io/resourceclaims/driver", "default"),
    ],
}


def allowed(api: Client, user: str, access: Access) -> list[str]:
    """Which of the verbs the API server's authorizers allow, on an object of any name."""
    group, plural, subresource = (access.resource + "/").split("/")[:3]
    attributes = {
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "namespace": access.namespace,
        "name": "any",
    }
    found = []
    for verb in access.verbs.split():
        review = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "metadata": {},
            "spec": {"user": user, "resourceAttributes": {**attributes, "verb": verb}},
        }
        if api.create(REVIEWS, review)["status"]["allowed"]:
            found.append(f"{verb} {access.resource}")
    return found


@pytest.mark.parametrize("program", ["agent", "controller"])
def test_what_a_program_does_not_need_is_refused(api: Client, driver: Driver, program: str) -> None:
    user = driver.user(program)
    wanted = WANTED_BY_NOBODY + WANTED_BY_ANOTHER[program]
    assert [each for access in wanted for each in allowed(api, user, access)] == []


def test_the_review_knows_what_is_allowed(api: Client, driver: Driver) -> None:
    """So that the test above cannot pass by asking wrongly."""
    binding = Access("update", "resource.k8s.io/resourceclaims/binding", "default")
    assert allowed(api, driver.user("controller"), binding)
    assert allowed(api, driver.user("agent"), Access("delete", "resource.k8s.io/resourceslices"))


def test_the_agent_may_not_write_a_claim(api: Client, agent: Client, namespace: str) -> None:
    made = api.create(RESOURCE_CLAIMS, claim("one", namespace))
    for subresource in ("", "status"):
        with pytest.raises(Forbidden):
            agent.replace(RESOURCE_CLAIMS, made, subresource=subresource)


def legacy_template(namespace: str, **metadata: object) -> Object:
    """As the controller makes it for pods with limits; `metadata` replaces ours."""
    made = template_for(namespace, "enflame-shared-gcu-2")
    assert made is not None
    return made | {"metadata": made["metadata"] | metadata}


TEMPLATES_OF_OTHERS: dict[str, dict[str, object]] = {
    "without the label": {"labels": {}},
    "by another name": {"name": "cards"},
}


@pytest.mark.parametrize("metadata", TEMPLATES_OF_OTHERS.values(), ids=TEMPLATES_OF_OTHERS)
def test_the_controller_writes_no_claim_templates_of_others(
    api: Client, controller_kubeconfig: Path, namespace: str, metadata: dict[str, object]
) -> None:
    client = connect(controller_kubeconfig, effects=Effects(), user_agent="tests/1")
    theirs = legacy_template(namespace, **metadata)
    made = api.create(RESOURCE_CLAIM_TEMPLATES, theirs)["metadata"]
    with pytest.raises(KubeError, match="its own claim templates for limits, and no others"):
        client.create(RESOURCE_CLAIM_TEMPLATES, theirs, dry_run=True)
    with pytest.raises(KubeError, match="its own claim templates for limits, and no others"):
        client.delete(RESOURCE_CLAIM_TEMPLATES, made["name"], namespace=namespace)
    client.close()


def test_the_controller_makes_and_deletes_its_own(
    controller_kubeconfig: Path, namespace: str
) -> None:
    client = connect(controller_kubeconfig, effects=Effects(), user_agent="tests/1")
    made = client.create(RESOURCE_CLAIM_TEMPLATES, legacy_template(namespace))["metadata"]
    client.delete(RESOURCE_CLAIM_TEMPLATES, made["name"], namespace=namespace)
    client.close()


def test_the_agent_knows_its_node(agent: Client) -> None:
    assert agent.get(NODES, OWN)["metadata"]["name"] == OWN
