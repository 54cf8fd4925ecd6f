"""What a stolen token writes beside an object's spec and status: who wrote it, who owns it, what
keeps it from ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from dra_driver.asks.templates import template_for
from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.attempts import Stage, is_refused, staged
from tests.control_plane.driver import Driver

pytestmark = pytest.mark.control_plane

Attempt = Callable[[Stage], object]

LASTING: Object = {"finalizers": ["example.com/never"]}
NO_EVENT = "has no finalizers and no owners"
NO_SLICE = "no finalizer, and no owner other than its own Node"
NO_TEMPLATE = "its claim templates no finalizers and no owners"
UNCHANGED = "changes no entries of other managers in a claim.s managedFields"


def owned_by(kind: str, name: str) -> Object:
    """Metadata of what keeps that object from ending (foreground deletion)."""
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "1"}
    return {"ownerReferences": [{**owner, "blockOwnerDeletion": True}]}


def make_template(stage: Stage, metadata: Object) -> object:
    body = template_for(stage.namespace, "enflame-gcu-1")
    assert body is not None
    body["metadata"] |= metadata
    return stage.thief.create(RESOURCE_CLAIM_TEMPLATES, body)


def pretend_to_have_allocated(stage: Stage) -> object:
    """Who applies what is there already owns it, too."""
    found = stage.claim(stage.other)
    body = {key: found[key] for key in ("apiVersion", "kind", "status")}
    return stage.thief.patch(
        RESOURCE_CLAIMS,
        stage.other,
        {**body, "metadata": {"name": stage.other, "namespace": stage.namespace}},
        namespace=stage.namespace,
        patch_type=PatchType.APPLY,
        subresource="status",
        field_manager="gcu-dra-controller",
    )


def forget_writers(stage: Stage) -> object:
    """The API server then takes all fields for nobody's."""
    return stage.replace_metadata(stage.other, managedFields=[{}])


def event_with(program: str, metadata: Object) -> Attempt:
    return lambda stage: stage.report(f"{DRIVER}/{program}", metadata=metadata)


CASES: dict[str, tuple[str, Attempt, str]] = {
    "an event that never goes": ("agent", event_with("agent", LASTING), NO_EVENT),
    "an event that keeps a pod": ("agent", event_with("agent", owned_by("Pod", "pod")), NO_EVENT),
    "an event of the controller's": (
        "controller",
        event_with("controller", LASTING),
        NO_EVENT,
    ),
    "a slice that never goes": ("agent", lambda s: s.make_slice(metadata=LASTING), NO_SLICE),
    "a slice that keeps another node": (
        "agent",
        lambda s: s.make_slice(metadata=owned_by("Node", s.other)),
        NO_SLICE,
    ),
    "a slice that keeps a namespace": (
        "agent",
        lambda s: s.make_slice(metadata=owned_by("Namespace", s.own)),
        NO_SLICE,
    ),
    "a template that never goes": (
        "controller",
        lambda s: make_template(s, LASTING),
        NO_TEMPLATE,
    ),
    "a template that keeps a pod": (
        "controller",
        lambda s: make_template(s, owned_by("Pod", "pod")),
        NO_TEMPLATE,
    ),
    "the controller as who allocated": ("agent", pretend_to_have_allocated, UNCHANGED),
    "nobody as who wrote a claim": ("controller", forget_writers, UNCHANGED),
}


@pytest.fixture(scope="module")
def stages(
    control_plane: Cluster,
    api: Client,
    driver: Driver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Stage]]:
    """By program."""
    folder = tmp_path_factory.mktemp("metadata")
    with (
        staged(control_plane, api, driver, folder, "agent") as agent,
        staged(control_plane, api, driver, folder, "controller") as controller,
    ):
        tried = (
            partial(agent.report, "anybody"),
            partial(controller.replace_metadata, controller.own, labels={"tried": "1"}),
            partial(make_template, controller, {"labels": {}}),
        )
        for each in tried:
            wait_until(partial(is_refused, each), PATIENCE, "the policies to be heeded")
        yield {"agent": agent, "controller": controller}


@pytest.mark.parametrize(("program", "attempt", "refusal"), CASES.values(), ids=CASES)
def test_a_token_does_not_write(
    stages: dict[str, Stage], program: str, attempt: Attempt, refusal: str
) -> None:
    with pytest.raises(KubeError, match=refusal):
        attempt(stages[program])


def test_the_agent_writes_beside_others(stages: dict[str, Stage]) -> None:
    """Who allocated stays known, and the agent's own entries are of its manager."""
    stage = stages["agent"]
    before = stage.claim(stage.own)["metadata"]["managedFields"]
    for index in (1, 2):
        stage.tell(stage.own, index=index)
        after = stage.claim(stage.own)["metadata"]["managedFields"]
        assert [each for each in after if each["manager"] != "gcu-dra-agent"] == before
