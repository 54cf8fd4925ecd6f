"""Claim templates for limits come when a pod waits for one, and go some time after its last pod."""

from __future__ import annotations

import pytest

from controller.queue.event_queue import ResourceEvent
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Forbidden, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object
from tests.unit.controller.world import RETENTION, World, pod

NAME = "enflame-shared-gcu-2"
CLAIM = "enflame-limits"


def user(name: str = "p", template: str = NAME, *, claim: str | None = None) -> Object:
    """A pod that refers to the template; `claim` is what was made from it."""
    made = [{"name": CLAIM, "resourceClaimName": claim}] if claim else []
    references = [{"name": CLAIM, "resourceClaimTemplateName": template}]
    return pod(name, resourceClaims=references, status={"resourceClaimStatuses": made})


def theirs() -> Object:
    return {"metadata": {"namespace": "default", "name": NAME}, "spec": {"spec": {}}}


def stored(world: World) -> Object | None:
    return world.api.live.get((RESOURCE_CLAIM_TEMPLATES, NAME))


def made_and_unused(world: World) -> None:
    """The template was made, and its only pod is gone."""
    world.put(PODS, user())
    assert world.run_until_idle() == [f"{NAME} create"]
    world.remove(PODS, "p")
    assert world.run_until_idle() == []


def test_made_once_for_all_pods_that_wait() -> None:
    world = World()
    for name in ("p", "q"):
        world.put(PODS, user(name))
    assert world.run_until_idle() == [f"{NAME} create"]
    world.put(PODS, user("r"))
    assert world.run_until_idle() == []


NEEDLESS = {
    "another name": user(template="cards"),
    "a name that only begins so": user(template="enflame-gcu-0"),
    "its claim is made already": user(claim="p-1"),
    "the pod has ended": user() | {"status": {"phase": "Succeeded"}},
    "the pod is being deleted": user()
    | {"metadata": user()["metadata"] | {"deletionTimestamp": "2026-01-02T00:00:00Z"}},
}


@pytest.mark.parametrize("needless", NEEDLESS.values(), ids=NEEDLESS)
def test_not_created_if_no_pod_waits_for_it(needless: Object) -> None:
    world = World()
    world.put(PODS, needless)
    assert world.run_until_idle() == []


def test_deleted_some_time_after_the_last_pod() -> None:
    world = World()
    made_and_unused(world)
    assert world.after(RETENTION - 1) == []
    assert world.after(1) == [f"{NAME} delete"]
    assert stored(world) is None


def test_not_deleted_while_pods_come_and_go() -> None:
    world = World()
    made_and_unused(world)
    world.after(RETENTION - 1)
    world.put(PODS, user("q", claim="q-1"))
    assert world.after(RETENTION) == []
    world.remove(PODS, "q")
    assert world.run_until_idle() == []
    assert world.after(RETENTION - 1) == []
    assert world.after(1) == [f"{NAME} delete"]


def test_a_new_leader_clears_up_after_the_old_one() -> None:
    world = World()
    made_and_unused(world)
    second = World(api=world.api)
    found = stored(world)
    assert found is not None
    second.put(RESOURCE_CLAIM_TEMPLATES, found)
    assert second.run_until_idle() == []
    assert second.after(RETENTION) == [f"{NAME} delete"]


def test_made_again_where_somebody_deleted_it() -> None:
    world = World()
    world.put(PODS, user())
    world.run_until_idle()
    world.remove(RESOURCE_CLAIM_TEMPLATES, NAME)
    assert world.run_until_idle() == [f"{NAME} create"]


def test_made_again_for_a_pod_that_came_while_it_was_deleted() -> None:
    """The watch reports the pod and the deletion before the answer to the deletion is read."""
    world = World()
    made_and_unused(world)
    world.pool.is_paused = True
    world.after(RETENTION)
    [deletion] = world.pool.submitted
    world.pool.submitted.clear()
    world.put(PODS, user("q"))
    deleted = ResourceEvent(RESOURCE_CLAIM_TEMPLATES, Change.DELETED, stored(world) or {})
    world.events.put(deleted)
    world.run_until_idle()
    world.pool.is_paused = False
    deletion()
    assert stored(world) is None
    assert world.run_until_idle() == [f"{NAME} create"]


def test_somebody_elses_is_never_touched() -> None:
    world = World()
    world.put_unseen(RESOURCE_CLAIM_TEMPLATES, theirs())
    world.put(PODS, user())
    assert world.run_until_idle() == [f"{NAME} create"]
    [told] = world.recorder.notes
    assert told.startswith(f"Pod p: ResourceClaimTemplate {NAME} was created by somebody else:")
    world.put(PODS, user(claim="p-1"))
    world.after(RETENTION)
    world.remove(PODS, "p")
    assert world.after(2 * RETENTION) == []
    assert stored(world) is not None


def test_a_template_without_our_label_is_not_deleted() -> None:
    world = World()
    made_and_unused(world)
    taken = world.put_unseen(RESOURCE_CLAIM_TEMPLATES, theirs())
    assert world.after(RETENTION) == [f"{NAME} delete"]
    assert stored(world) == taken


def test_what_a_template_made_earlier_is_learnt_from_the_refusal() -> None:
    """The watch is late: another replica made it a moment ago."""
    world = World()
    made = {"gcu.enflame.com/made-for-limits": "true"}
    world.put_unseen(
        RESOURCE_CLAIM_TEMPLATES, {"metadata": theirs()["metadata"] | {"labels": made}, "spec": {}}
    )
    world.put(PODS, user())
    assert world.run_until_idle() == [f"{NAME} create"]
    assert world.recorder.notes == []
    assert world.run_until_idle() == []


def test_a_refusal_is_reported_and_retried() -> None:
    world = World()
    world.api.write_errors.append(Forbidden("exceeded quota: templates", status=403))
    world.put(PODS, user())
    assert world.run_until_idle() == [f"{NAME} create"]
    assert "cannot be created: exceeded quota" in world.recorder.notes[0]
    assert world.after(60.0) == [f"{NAME} create"]
    assert stored(world) is not None


def test_no_answer_is_tried_again() -> None:
    world = World()
    world.api.write_errors.append(Unavailable("no answer"))
    world.put(PODS, user())
    assert world.run_until_idle() == [f"{NAME} create"]
    assert world.after(10.0) == [f"{NAME} create"]
