"""Which event of a pod `kubectl gcu explain` quotes, by the rights of its user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dra_driver.kube.api import Listing
from dra_driver.kube.errors import Forbidden
from dra_driver.kube.resources import CORE_EVENTS, EVENTS, PODS, Resource
from dra_driver.model.claims.claim import Object
from kubectl_gcu.scheduling.explain import explain_pod
from kubectl_gcu.scheduling.explanation import Explanation
from tests.unit.controller.world import pod
from tests.unit.kubectl_gcu.server import NOW, Server

REASON = "FailedResourceClaimCreation"
EXCEEDED = "PodResourceClaim enflame-limits: resourceclaims is forbidden: exceeded quota: gcus"
TEMPLATE = (
    "claim enflame-limits of the pod does not exist; it is made from the ResourceClaimTemplate two"
)


class RestrictedServer(Server):
    """This user may not list `hidden`, in no namespace."""

    def __init__(self, *objects: tuple[Resource, Object], hidden: Sequence[Resource] = ()) -> None:
        super().__init__(*objects)
        self._hidden = hidden

    def list(self, resource: Resource, **more: Any) -> Listing:
        if resource in self._hidden:
            raise Forbidden("no", status=403)
        return super().list(resource, **more)


def over_quota() -> Object:
    found = pod("p")
    reference = {"name": "enflame-limits", "resourceClaimTemplateName": "two"}
    found["spec"]["resourceClaims"] = [reference]
    return found


def newer(note: str, minute: int, about: str = "p") -> Object:
    return {
        "metadata": {"name": f"{about}.{minute}"},
        "reason": REASON,
        "note": note,
        "regarding": {"name": about},
        "deprecatedLastTimestamp": f"2026-01-01T00:{minute:02}:00Z",
    }


def core(note: str, minute: int, about: str = "p") -> Object:
    return {
        "metadata": {"name": f"{about}.{minute}"},
        "reason": REASON,
        "message": note,
        "involvedObject": {"name": about},
        "lastTimestamp": f"2026-01-01T00:{minute:02}:00Z",
    }


def explained(*events: tuple[Resource, Object], hidden: Sequence[Resource] = ()) -> Explanation:
    server: Any = RestrictedServer((PODS, over_quota()), *events, hidden=hidden)
    return explain_pod(server, "default", "p", now=NOW)


def test_the_newest_event_about_the_pod() -> None:
    found = explained(
        (EVENTS, newer(EXCEEDED, 5)),
        (EVENTS, newer("template two not found", 4)),
        (EVENTS, newer("of another pod", 6, about="q")),
    )
    assert (found.step.text, found.missing) == (f"{TEMPLATE}: {EXCEEDED}", "")


def test_a_user_who_may_list_events_of_core_alone() -> None:
    """With the role view or edit before Kubernetes 1.35."""
    found = explained(
        (CORE_EVENTS, core(EXCEEDED, 5)),
        (CORE_EVENTS, core("template two not found", 4)),
        (CORE_EVENTS, core("of another pod", 6, about="q")),
        hidden=[EVENTS],
    )
    assert (found.step.text, found.missing) == (f"{TEMPLATE}: {EXCEEDED}", "")


def test_a_user_who_may_list_no_events_learns_it() -> None:
    found = explained((EVENTS, newer(EXCEEDED, 5)), hidden=[EVENTS, CORE_EVENTS])
    assert (found.step.text, found.missing) == (
        TEMPLATE,
        (
            "you may not list events in the namespace default: what they say about the pod is not "
            "shown"
        ),
    )
    assert found.step.remedy == (
        "its events say why, to those who may read them: kubectl describe pod p --namespace default"
    )


def test_no_event_yet_needs_no_word() -> None:
    assert explained().step.remedy == ""


def test_no_event_about_an_earlier_pod_of_the_same_name() -> None:
    """As those of a StatefulSet are called."""
    earlier, present = newer("of an earlier pod", 6), newer(EXCEEDED, 5)
    earlier["regarding"]["uid"] = "uid-of-the-earlier-pod"
    present["regarding"]["uid"] = "uid-p"
    found = explained((EVENTS, earlier), (EVENTS, present))
    assert found.step.text == f"{TEMPLATE}: {EXCEEDED}"
    old = core("of an earlier pod", 6)
    old["involvedObject"]["uid"] = "uid-of-the-earlier-pod"
    found = explained((CORE_EVENTS, old), (CORE_EVENTS, core(EXCEEDED, 5)), hidden=[EVENTS])
    assert found.step.text == f"{TEMPLATE}: {EXCEEDED}"
