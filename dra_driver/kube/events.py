"""Events (events.k8s.io/v1) about any object: told once, in the background, never in the way."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import EVENTS
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)

_NOTE_LENGTH = 1024  # events.k8s.io/v1, Event.note
_QUIET_SECONDS = 300.0
# A pod and its claims each take one: enough for as many as may wait at a time. With fewer, those
# told first are forgotten before their turn comes again, and all are told anew each time.
_REMEMBERED = 65536
_QUEUED = 1000
_FULL_SECONDS = 30.0  # until there may be room in a queue that is full

K = TypeVar("K")


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


class Recorder(Protocol):
    """What others need of `EventRecorder`."""

    def record(
        self, regarding: Object, *, kind: EventType, reason: str, note: str, action: str
    ) -> float: ...


@dataclass(frozen=True, slots=True)
class _Said:
    regarding: str
    reason: str
    note: str


class EventRecorder:
    """Writes events; the same one about the same object again only after `quiet` seconds, and
    another note for the same reason not before `spacing` seconds.

    `record` returns at once and never raises. The queue is bounded: what a slow API server
    leaves no room for is dropped, logged, and not counted as told. `controller` is the event's
    ``reportingController`` (such as ``gcu.enflame.com/controller``), `instance` the pod's name.
    """

    def __init__(
        self,
        api: Api,
        *,
        controller: str,
        instance: str,
        quiet: float = _QUIET_SECONDS,
        spacing: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._controller = controller
        self._instance = instance
        self._quiet = quiet
        self._spacing = spacing
        self._clock = clock
        self._now = now
        self._said: OrderedDict[_Said, float] = OrderedDict()
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()
        self._queue: queue.Queue[Object | None] = queue.Queue(_QUEUED)
        self._thread = threading.Thread(target=self.run, name="events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, timeout: float = 5.0) -> None:
        """Write what is queued, for at most `timeout` seconds."""
        end = time.monotonic() + timeout
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
        note: str,
        action: str,
    ) -> float:
        """Tell about `regarding`, an object with apiVersion, kind and metadata. `reason` and
        `action` are words in CamelCase; a `note` above 1,024 bytes is cut.

        Gives 0, or the seconds after which it is worth saying again: it came too soon after
        another note for the same reason, or found no room."""
        event = self._event(regarding, kind, reason, _clip(note), action)
        said = _Said(event["regarding"].get("uid") or str(event["regarding"]), reason, note)
        with self._lock:
            now = self._clock()
            if not self._is_news(said, now):
                return 0.0
            too_soon = self._last.get((said.regarding, reason), -inf) + self._spacing - now
            if too_soon > 0:
                return too_soon
            try:
                self._queue.put_nowait(event)
            except queue.Full:
                logger.warning("too many events are waiting; dropped %s: %s", reason, note)
                return _FULL_SECONDS
            _remember(self._said, said, now, self._quiet)
            _remember(self._last, (said.regarding, reason), now, self._spacing)
        return 0.0

    def run(self) -> None:
        """The thread's work; returns after `stop`."""
        while (event := self._queue.get()) is not None:
            try:
                self._api.create(EVENTS, event)
            except KubeError as error:
                logger.warning("cannot write the event %s: %s", event["reason"], error)

    def _is_news(self, said: _Said, now: float) -> bool:
        last = self._said.get(said)
        return last is None or now - last >= self._quiet

    def _event(
        self, regarding: Mapping[str, Any], kind: EventType, reason: str, note: str, action: str
    ) -> Object:
        metadata = regarding["metadata"]
        # Events of cluster-wide objects stand in "default", as upstream's recorder puts them.
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
            "eventTime": self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._controller,
            "reportingInstance": self._instance[:128],
            "action": action,
            "reason": reason,
            "regarding": {key: value for key, value in reference.items() if value},
            "note": note,
            "type": kind.value,
        }


def _remember(told: OrderedDict[K, float], key: K, now: float, seconds: float) -> None:
    """As told now, and forget what was longer ago than these seconds: it makes no difference."""
    told[key] = now
    told.move_to_end(key)
    while len(told) > _REMEMBERED or now - next(iter(told.values())) > seconds:
        told.popitem(last=False)


def _clip(note: str) -> str:
    # The limit counts bytes: the API server is written in Go.
    encoded = note.encode()
    if len(encoded) <= _NOTE_LENGTH:
        return note
    return encoded[: _NOTE_LENGTH - 3].decode(errors="ignore") + "…"
