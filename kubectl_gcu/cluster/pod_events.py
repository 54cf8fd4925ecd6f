"""Events about a pod and its claims."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden
from dra_driver.kube.resources import CORE_EVENTS, EVENTS
from dra_driver.model.claims.claim import Object

NOT_ALLOCATED: Final = "GcuAllocationFailed"
"""The controller's reason for a pod that waits; the note says why."""


def events_about(api: Api, namespace: str, objects: Collection[Object]) -> tuple[list[Object], str]:
    """Events (``events.k8s.io/v1``) about the objects, not about earlier ones of the same names,
    the newest last; and, where the user may not list events, a sentence that says so."""
    try:
        events = _list(api, namespace)
    except Forbidden:
        return [], (
            f"you may not list events in the namespace {namespace}: what they say about the pod "
            "is not shown"
        )
    known = {(each["metadata"]["name"], each["metadata"]["uid"]) for each in objects}
    known |= {(name, "") for name, _ in known}  # an event without UID
    about = [event for event in events if _subject(event) in known]
    return sorted(about, key=event_time), ""


def _subject(event: Object) -> tuple[str, str]:
    regarding = event.get("regarding") or {}
    return str(regarding.get("name")), str(regarding.get("uid") or "")


def _list(api: Api, namespace: str) -> list[Object]:
    try:
        return list(api.list(EVENTS, namespace=namespace).items)
    except Forbidden:
        return [_converted(each) for each in api.list(CORE_EVENTS, namespace=namespace).items]


def _converted(event: Object) -> Object:
    """An event of core/v1, with the names of ``events.k8s.io/v1``."""
    return {
        "reason": event.get("reason"),
        "note": event.get("message"),
        "regarding": event.get("involvedObject"),
        "series": event.get("series"),
        "eventTime": event.get("eventTime"),
        "deprecatedLastTimestamp": event.get("lastTimestamp"),
    }


def event_time(event: Object) -> str:
    """When an event of ``events.k8s.io/v1`` was seen last (RFC 3339); empty if it does not say."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("deprecatedLastTimestamp")
        or event.get("eventTime")
        or ""
    )
