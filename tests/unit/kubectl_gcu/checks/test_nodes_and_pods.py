"""Faults that nodes report, and of pods with cards: each alone, in a healthy cluster."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks.installation import (
    Installation,
)
from tests.unit.kubectl_gcu.checks.installations import (
    CLAIM,
    HEALTHY,
    by_limits,
    event,
    found_in,
    part,
    pod,
    with_pods,
    with_state,
)

LIMIT = [{"name": "main", "resources": {"limits": {"enflame.com/shared-gcu": "2"}}}]
CDI = "CDI device injection failed: unresolvable CDI devices gcu.enflame.com/claim=x"


def agents(*pods: Object) -> Installation:
    return with_state(pods=(part("controller", "b"), *pods))


def env(value: str) -> list[Object]:
    return [{"name": "main", "env": [{"name": "ENFLAME_VISIBLE_DEVICES", "value": value}]}]


def waiting(phase: str = "Pending", **status: Any) -> Installation:
    """A pod with a claim whose containers do not start."""
    user = pod("user", phase=phase)
    user["status"] |= status
    return with_pods(user, of=with_state(claims=(CLAIM,)))


def unready(message: str) -> list[Object]:
    return [{"name": "main", "state": {"waiting": {"message": message}}}]


def with_ended(*names: str, claim: Object = CLAIM) -> Installation:
    """A pod with three containers: `work` and `more` use a card, `sidecar` does not."""
    uses = {"resources": {"claims": [{"name": "gcu"}]}}
    containers = [{"name": "work"} | uses, {"name": "more"} | uses, {"name": "sidecar"}]
    claims = [{"name": "gcu", "resourceClaimName": "one"}]
    user = pod("user", containers=containers, resourceClaims=claims, restartPolicy="Never")
    ended = {"terminated": {"exitCode": 0}}
    user["status"]["containerStatuses"] = [{"name": each, "state": ended} for each in names]
    return with_pods(user, of=with_state(claims=(claim,)))


NOT_REGISTERED = event(
    "FailedPrepareDynamicResources",
    "Failed to prepare dynamic resources: DRA driver gcu.enflame.com is not registered",
    kind="Pod",
    uid="uid-user",
)
REFUSED = (
    "Failed to prepare dynamic resources: claim default/one, request 'gcu', device "
    "shared-0000-01-00-0: its GcuConfig asks for slices 3, and 1 was granted"
)


def refused(note: str = REFUSED, *, bound: str = "2026-01-02T11:50:00Z", **more: Any) -> Any:
    """A bound pod whose claim the node does not prepare."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}
    about = event("FailedPrepareDynamicResources", note, kind="Pod", uid="uid-user")
    return replace(waiting(conditions=[condition], **more), events=(about,))


NOT_PREPARED = (
    "not-prepared: claim default/one: it holds its devices, and pod default/user on node a does "
    "not start"
)
LIMITS = by_limits()

FAULTS: dict[str, tuple[Installation, str]] = {
    "what an agent reported": (
        replace(
            HEALTHY,
            events=(
                event("GcuJournalDamaged", "the journal was damaged.", kind="Node", name="a"),
                event("GcuCardLost", "which a taint says", kind="Node", name="a"),
            ),
        ),
        "node-report: node a: GcuJournalDamaged: the journal was damaged. docs/user/health.md",
    ),
    "a socket that the kubelet does not know": (
        replace(waiting(), events=(NOT_REGISTERED,)),
        "not-registered: pod default/user on node a: the kubelet does not know the driver's soc",
    ),
    "a claim that the node refuses": (
        refused(),
        f"{NOT_PREPARED}: {REFUSED}. If the next tries fail, too, delete the pod, correct what",
    ),
    "another failure": (
        refused("Failed to prepare dynamic resources: efsmi hangs."),
        f"{NOT_PREPARED}: Failed to prepare dynamic resources: efsmi hangs. If the next tries",
    ),
    "no CDI device": (
        waiting(containerStatuses=unready(CDI)),
        f"cdi-failed: pod default/user on node a: its container runtime finds no CDI device ({CDI}",
    ),
    "no CDI device any more": (
        waiting("Running", containerStatuses=unready(CDI)),
        (
            "cdi-failed: pod default/user on node a: its container runtime finds no CDI device "
            f"({CDI}). Delete the pod: the CDI file of its claim is gone (docs/user/health.md#when-"
        ),
    ),
    "cards by a variable": (
        with_pods(pod("thief", containers=env("0,1"))),
        (
            "cards-without-claim: pod default/thief on node a: it has cards by ENFLAME_VISIBLE_"
            "DEVICES=0,1, and no claim: others may"
        ),
    ),
    "cards by a debugger": (
        with_pods(pod("thief", ephemeralContainers=env("all"))),
        "cards-without-claim: pod default/thief on node a: it has cards by ENFLAME_VISIBLE_DEVICES",
    ),
    "cards by a hostPath": (
        with_pods(pod("thief", volumes=[{"name": "v", "hostPath": {"path": "/dev/gcu0"}}])),
        "cards-without-claim: pod default/thief on node a: it has cards by the hostPath /dev/gcu0",
    ),
    "cards by the vendor's runtime": (
        agents(
            {
                **part("agent", "a"),
                "spec": {**part("agent", "a")["spec"], "runtimeClassName": "enflame"},
            },
            pod("thief", runtimeClassName="enflame"),
        ),
        "cards-without-claim: pod default/thief on node a: it has cards by the RuntimeClass enfla",
    ),
    "a card that only ended containers used": (
        with_ended("work", "more"),
        (
            "container-ended: pod default/user on node a: work, more ended, and the pod keeps "
            "0000:01:00.0 while its other containers run. Delete the pod or its Job. A "
            "sidecar ends with the other containers if it is an init container with restartPolicy "
            "Always."
        ),
    ),
    "an extender that is not called": (
        with_pods(*(pod(f"p{i}", containers=LIMIT) for i in range(5)), of=LIMITS),
        (
            "extender-bypassed: scheduler extender: it did not place default/p0, default/p1, "
            "default/p2 and 2 others, so"
        ),
    ),
    "an extender that is not called for a few pods": (
        with_pods(*(pod(f"p{i}", containers=LIMIT) for i in range(3)), of=LIMITS),
        (
            "extender-bypassed: scheduler extender: it did not place default/p0, default/p1, "
            "default/p2, so"
        ),
    ),
}


@pytest.mark.parametrize(("installation", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(installation: Installation, line: str) -> None:
    [found] = found_in(installation)
    assert found.startswith(line)


@pytest.mark.parametrize(
    ("value", "cards"),
    [
        pytest.param(
            "5,6", " (minor 5 = 0000:01:00.0, held by default/user)", id="one of them is known"
        ),
        pytest.param("6", "", id="a minor that nobody publishes"),
        pytest.param("all", "", id="no list of minors"),
    ],
)
def test_whose_cards_a_variable_takes(value: str, cards: str) -> None:
    prepared = copy.deepcopy(CLAIM)
    prepared["status"]["devices"][0]["data"] = {"index": 0, "minor": 5}
    thief = pod("thief", containers=env(value))
    [line] = found_in(with_pods(pod("user"), thief, of=with_state(claims=(prepared,))))
    assert f"and no claim: others may have the same cards{cards}. Give" in line


def test_a_known_card_that_nobody_holds_has_no_holder() -> None:
    [line] = found_in(with_pods(pod("thief", containers=env("0")), of=LIMITS))
    assert "others may have the same cards (minor 0 = 0000:01:00.0). Give" in line


def test_a_card_that_a_container_still_uses() -> None:
    assert found_in(with_ended("work")) == []


def test_access_for_administrators_keeps_no_card() -> None:
    admins = copy.deepcopy(CLAIM)
    [result] = admins["status"]["allocation"]["devices"]["results"]
    result["adminAccess"] = True
    assert found_in(with_ended("work", "more", claim=admins)) == []


def assigned() -> Object:
    found = pod("p", containers=LIMIT)
    found["metadata"]["annotations"] = {"gcu.enflame.com/assigned-cards": "0000:01:00.0"}
    return found


@pytest.mark.parametrize(
    "installation",
    [
        pytest.param(waiting(containerStatuses=unready("ErrImagePull")), id="another reason"),
        pytest.param(waiting("Failed", containerStatuses=unready(CDI)), id="it has failed"),
        pytest.param(refused(bound="2026-01-02T11:58:00Z"), id="refused a moment ago"),
        pytest.param(refused(phase="Running"), id="refused, and it runs since"),
        pytest.param(with_pods(pod("other", containers=env("none"))), id="no card by the variable"),
        pytest.param(with_pods(pod("other", node="b", containers=env("all"))), id="elsewhere"),
        pytest.param(
            with_pods(pod("over", phase="Succeeded", containers=env("all"))), id="it has ended"
        ),
        pytest.param(
            with_pods(
                pod(
                    "user",
                    containers=env("0"),
                    resourceClaims=[{"name": "gcu", "resourceClaimName": "one"}],
                )
            ),
            id="it has a claim",
        ),
        pytest.param(with_pods(assigned(), of=LIMITS), id="the extender placed it"),
        pytest.param(
            with_pods(pod("p", containers=LIMIT, nodeName=""), of=LIMITS), id="not placed yet"
        ),
    ],
)
def test_nothing_is_wrong(installation: Installation) -> None:
    assert found_in(installation) == []
