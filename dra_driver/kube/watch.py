"""A reflector: one resource, listed once and then followed, each in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from dra_driver.kube.api import Api, Change, Listing, Watch
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.errors import Gone, KubeError, TooManyRequests, Unavailable
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.collection import no_collection
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_WATCH_SECONDS = 300.0
_STREAM_SECONDS = 60.0  # for a whole list; pages take the place of a stream that lasts longer
_NO_WATCH_LIST = frozenset({400, 422})  # HTTP; the server does not allow such a request
_SHORT_WATCH = 1.0  # seconds; a watch that ended sooner without an event counts as a failure


class Handler(Protocol):
    """Receives every object, from one thread."""

    def on_replace(self, items: Sequence[Object]) -> None:
        """These are all the objects there are; whatever else was known is gone."""

    def on_event(self, change: Change, obj: Object) -> None:
        """One object was ADDED, MODIFIED or DELETED (then `obj` is its last state)."""


class Reflector(Background):
    """Lists, then watches from there; lists again only when the server no longer has the
    resourceVersion (410). After every failure it waits, longer each time, so that a refusing
    server sees a bounded number of requests; only a watch that worked resets the delay.

    `synced` is set once the first list was delivered; `problem` is why nothing is followed right
    now, None while a watch is open. `wait(seconds)` sleeps, and returns True when the reflector
    was stopped; `clock` is monotonic seconds. The handler receives objects as `decoder` returns
    them. A `streamed` list is one stream (WatchList) where the server has that, else it comes in
    pages.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        handler: Handler,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        decoder: Decoder = WHOLE,
        streamed: bool = False,
        backoff: Backoff | None = None,
        wait: Wait | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__(f"reflector-{resource.plural}", wait=wait, interrupt=self._end_watch)
        self._api = api
        self._resource = resource
        self._handler = handler
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._decoder = decoder
        self._streamed = streamed
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._watch: Watch | None = None
        self._version = ""  # from where the next watch goes on; empty: list first
        self.synced = threading.Event()
        self.problem: str | None = None

    def run(self) -> None:
        """The thread's work; returns after `stop`."""
        while not self._stopped.is_set():
            least = 0.0
            try:
                if not self._version:
                    self._list()
                if self._follow():
                    continue
            except Gone as error:
                logger.info("listing %s again: %s", self._resource.plural, error)
                self._version = ""
            except KubeError as error:
                least = self._on_failure(error)
            self._wait(max(least, self._backoff.next()))

    def _on_failure(self, error: KubeError) -> float:
        """A list or a watch failed. Returns the least number of seconds to wait."""
        self.problem = f"cannot follow {self._resource.plural}: {error}"
        logger.warning("%s", self.problem)
        return error.retry_after if isinstance(error, TooManyRequests) else 0.0

    def _end_watch(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.close()

    def _list(self) -> None:
        with no_collection():
            listing = self._stream() if self._streamed else None
            if listing is None:
                listing = self._api.list(
                    self._resource,
                    namespace=self._namespace,
                    label_selector=self._label_selector,
                    field_selector=self._field_selector,
                    decoder=self._decoder,
                )
            self._handler.on_replace(listing.items)
        self._version = listing.resource_version
        self.synced.set()

    def _stream(self) -> Listing | None:
        """The list as a stream (WatchList), which the server sends from its watch cache; None
        where it has no WatchList, or ends the stream before its end, as a proxy may."""
        items: dict[str, Object] = {}
        try:
            self._watch = watch = self._open("", _STREAM_SECONDS, initial_events=True)
        except KubeError as error:
            if error.status not in _NO_WATCH_LIST:
                raise
            logger.info("the list of %s is read in pages: %s", self._resource.plural, error)
            return None
        try:
            for event in () if self._stopped.is_set() else watch:
                metadata = event.object["metadata"]
                if event.ends_initial_events():
                    return Listing(tuple(items.values()), metadata["resourceVersion"])
                if event.change is Change.DELETED:
                    items.pop(metadata["uid"], None)
                elif event.change is not Change.BOOKMARK:
                    items[metadata["uid"]] = event.object
        except Unavailable as error:
            logger.info("the stream of %s broke: %s", self._resource.plural, error)
        finally:
            self._watch = None
            watch.close()
        logger.info("the stream of %s ended early", self._resource.plural)
        return None

    def _open(self, version: str, timeout: float, *, initial_events: bool = False) -> Watch:
        return self._api.watch(
            self._resource,
            resource_version=version,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            decoder=self._decoder,
            timeout=timeout,
            initial_events=initial_events,
        )

    def _follow(self) -> bool:
        """Watch until the server ends it; False where that was at once and without an event."""
        begun = self._clock()
        seen = False
        self._watch = watch = self._open(self._version, _WATCH_SECONDS)
        self.problem = None
        try:
            if self._stopped.is_set():  # stop() may have come before there was a watch to close
                return True
            for event in watch:
                if event.change is not Change.BOOKMARK:
                    self._handler.on_event(event.change, event.object)
                self._version = event.object["metadata"]["resourceVersion"]
                if not seen:
                    seen = True
                    self._backoff.reset()
        finally:
            self._watch = None
            watch.close()
        worked = seen or self._clock() - begun >= _SHORT_WATCH
        if worked:
            self._backoff.reset()
        return worked
