"""Events (events.k8s.io/v1) about any object, written in the background."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Protocol
from uuid import uuid4

from dra_driver.kube.api import Api
from dra_driver.kube.errors import (
    AlreadyExists,
    KubeError,
    concerns_all,
)
from dra_driver.kube.event_filter import EventFilter, EventLimits, Topic
from dra_driver.kube.resources import EVENTS
from dra_driver.model.claims.claim import Object
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_NOTE_LENGTH = 1024  # events.k8s.io/v1, Event.note
_QUEUED = 1000
_FULL_SECONDS = 30.0  # until a full queue may have room
_TRIES: Final = 12  # for one event, as client-go (tools/record, maxTriesPerEvent)


BuildNote = Callable[[], str]
"""Builds a note; called only if the event may be sent."""


Now = Callable[[], datetime]
"""The present time in UTC."""


Note = str | BuildNote


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


class Recorder(Protocol):
    """The interface of `EventRecorder`."""

    def record(
        self, regarding: Object, *, kind: EventType, reason: str, note: Note, action: str
    ) -> float: ...


@dataclass(eq=False)
class EventRecorder(Background):
    """Writes events, within the `limits` for each object and for all.

    `record` returns at once and never raises. The queue is bounded: if a slow API server fills it,
    an event is dropped and logged, and does not count as sent. An event that a server does not take
    because it is away or busy is tried again, for some minutes. `controller` is the event's
    ``reportingController`` (such as ``gcu.enflame.com/controller``), `instance` the pod's name.
    """

    api: Api
    _: KW_ONLY
    controller: str
    instance: str
    limits: InitVar[EventLimits | None] = None
    clock: Clock = time.monotonic
    now: Now = lambda: datetime.now(UTC)
    wait: InitVar[Wait | None] = None

    def __post_init__(self, limits: EventLimits | None, wait: Wait | None) -> None:
        super().__init__("events", wait=wait)
        self._filter = EventFilter(limits or EventLimits())
        self._lock = threading.Lock()
        self._queue: queue.Queue[Object | None] = queue.Queue(_QUEUED)

    def stop(self, timeout: float = 5.0) -> None:
        """Write the queued events, for at most `timeout` seconds."""
        end = time.monotonic() + timeout
        self._stopped.set()
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            logger.warning("%d events were not written before the end", self._queue.qsize())
            return
        if self._thread.is_alive():
            self._thread.join(max(0.0, end - time.monotonic()))

    def record(
        self,
        regarding: Mapping[str, Any],
        *,
        kind: EventType,
        reason: str,
        note: Note,
        action: str,
    ) -> float:
        """Write an event about `regarding`, an object with apiVersion, kind and metadata. `reason`
        and `action` are words in CamelCase; a `note` above 1,024 bytes is cut.

        Returns 0, or the seconds after which the caller may record it again, because of the limits
        or a full queue."""
        namespace = regarding["metadata"].get("namespace") or ""
        topic = Topic(_identity(regarding), reason, namespace)
        with self._lock:
            too_soon = self._filter.wait(topic, self.clock())
        if too_soon:
            return too_soon
        text = note if isinstance(note, str) else note()
        with self._lock:
            now = self.clock()
            if not self._filter.is_due(topic, text, now):
                return 0.0
            try:
                self._queue.put_nowait(self._event(regarding, kind, reason, _clip(text), action))
            except queue.Full:
                logger.warning("too many events are waiting; dropped %s: %s", reason, text)
                return _FULL_SECONDS
            self._filter.on_sent(topic, text, now)
        return 0.0

    def run(self) -> None:
        while (event := self._queue.get()) is not None:
            self._write(event)

    def _write(self, event: Object) -> None:
        backoff = Backoff(first=1.0, longest=30.0)
        for tries in range(1, _TRIES + 1):
            try:
                self.api.create(EVENTS, event)
            except AlreadyExists:  # an earlier try, whose answer was lost
                return
            except KubeError as error:
                pause = max(error.retry_after or 0.0, backoff.next())
                if tries == _TRIES or not concerns_all(error) or self._wait(pause):
                    logger.warning("cannot write the event %s: %s", event["reason"], error)
                    return
                logger.info("the event %s is written later: %s", event["reason"], error)
            else:
                return

    def _event(
        self, regarding: Mapping[str, Any], kind: EventType, reason: str, note: str, action: str
    ) -> Object:
        metadata = regarding["metadata"]
        # Upstream's recorder writes events of cluster-wide objects into "default" as well.
        namespace = metadata.get("namespace") or "default"
        reference = {
            "apiVersion": regarding["apiVersion"],
            "kind": regarding["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace"),
            "uid": metadata.get("uid"),
        }
        name = metadata["name"][:200]
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{name}.{uuid4().hex[:16]}", "namespace": namespace},
            "eventTime": self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self.controller,
            "reportingInstance": self.instance[:128],
            "action": action,
            "reason": reason,
            "regarding": {key: value for key, value in reference.items() if value},
            "note": note,
            "type": kind.value,
        }


def _identity(regarding: Mapping[str, Any]) -> str:
    metadata = regarding["metadata"]
    namespace = metadata.get("namespace", "")
    return str(metadata.get("uid") or f"{regarding['kind']} {namespace}/{metadata['name']}")


def _clip(note: str) -> str:
    # The limit counts bytes: the API server is written in Go.
    encoded = note.encode()
    if len(encoded) <= _NOTE_LENGTH:
        return note
    return encoded[: _NOTE_LENGTH - 3].decode(errors="ignore") + "…"
