"""What the cluster's events tell users."""

from __future__ import annotations

from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import Installation


def notes(
    driver: Installation, namespace: str, kind: str, reason: str, name: str = ""
) -> list[str]:
    """The notes of the namespace's events for that reason about objects of that kind, or about
    the one of that name."""
    events = driver.cluster.get("events.v1.events.k8s.io", f"--namespace={namespace}")["items"]
    return [
        event["note"]
        for event in events
        if event["regarding"]["kind"] == kind
        and event["reason"] == reason
        and name in {"", event["regarding"]["name"]}
    ]


def wait_for_note(driver: Installation, namespace: str, kind: str, reason: str, words: str) -> None:
    """Return when such an event has these words in its note. Raises WaitTimeout."""
    wait_until(
        lambda: any(words in note for note in notes(driver, namespace, kind, reason)),
        PATIENCE,
        f"an event {reason} of a {kind} with {words!r}",
        seen=lambda: driver.cluster.kubectl("get", "events", f"--namespace={namespace}"),
    )
