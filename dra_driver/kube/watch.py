"""A reflector: one resource, listed once and then followed, each in a thread of its own."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Protocol

from dra_driver.kube.api import Api, Change, Watch
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.errors import Gone, KubeError, TooManyRequests, Unavailable
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.collection import no_collection
from dra_driver.util.hooks import Clock, OnChange

logger = logging.getLogger(__name__)

# The server ends a watch after this time, or up to twice as long: those that began together, as
# when the server was away, do not end together.
_WATCH_SECONDS = 300.0
_SHORT_WATCH = 1.0  # seconds; a watch that ended sooner without an event counts as a failure
# Seconds without an answer after which the server may have another history: etcd was restored from
# a backup, and counts on from an older version. A watch from our version would be served, and stay
# silent until the server's version has passed ours (1.36.3, `Cacher.Watch`).
_LIST_AGAIN_AFTER = 10.0
# No cluster writes so many versions between two lists. `etcdutl snapshot restore --bump-revision`
# adds 10^9 where it is used as etcd's page on recovery says.
_BUMPED = 10**8


class WatchHandler(Protocol):
    """Receives every object, from one thread."""

    def on_replace(self, items: Sequence[Object]) -> None:
        """These are all the objects there are; whatever else was known is gone."""

    def on_event(self, change: Change, obj: Object) -> None:
        """One object was ADDED, MODIFIED or DELETED (then `obj` is its last state)."""


def ignore_restored() -> None:
    """For handlers that compare no versions."""


@dataclass(eq=False)
class Reflector(Background):
    """Lists, then watches from there; lists again when the server no longer has the
    resourceVersion (410), did not answer for ten seconds, or sent an error within a watch. After
    every failure it waits, longer each time, so that a refusing server sees a bounded number of
    requests; only a watch that worked, and `reconnect`, reset the delay.

    `synced` is set once the first list was delivered; `problem` is why nothing is followed right
    now, None while a watch is open. `clock` is monotonic seconds, `draw` gives numbers in [0, 1).
    The handler receives objects as `decoder` returns them. `on_restored` is called when the
    server's history went back, as after a restore of etcd, before the handler receives the list
    that shows it: whoever compares versions must start anew.
    """

    api: Api
    resource: Resource
    handler: WatchHandler
    _: KW_ONLY
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    decoder: Decoder = WHOLE
    on_restored: OnChange = ignore_restored
    backoff: InitVar[Backoff | None] = None
    wait: InitVar[Wait | None] = None
    clock: Clock = time.monotonic
    draw: Callable[[], float] = random.random

    def __post_init__(self, backoff: Backoff | None, wait: Wait | None) -> None:
        self._answered = threading.Event()  # ends the wait after a failure
        super().__init__(
            f"reflector-{self.resource.plural}",
            wait=wait or self._answered.wait,
            interrupt=self.reconnect,
        )
        self._backoff = backoff or Backoff()
        self._silent_since: float | None = None
        self._watch: Watch | None = None
        self._version = ""  # from where the next watch goes on; empty: list first
        self._newest = 0  # the last version that the server gave
        self.synced = threading.Event()
        self.problem: str | None = None

    def run(self) -> None:
        while not self._stopped.is_set():
            least = 0.0
            try:
                if not self._version or self._was_silent():
                    self._list()
                if self._follow():
                    continue
            except Gone as error:
                logger.info("listing %s again: %s", self.resource.plural, error)
                self._version = ""
            except KubeError as error:
                least = self._on_failure(error)
            self._pause(max(least, self._backoff.next()))

    def reconnect(self) -> None:
        """Go on at once from where it was, on another connection: the server has answered others
        again after it was away. A list that has begun goes on. Safe for any thread."""
        self._answered.set()
        watch = self._watch
        if watch is not None:
            watch.close()

    def _pause(self, seconds: float) -> None:
        self._wait(seconds)
        if self._answered.is_set():
            self._answered.clear()
            self._backoff.reset()

    def _on_failure(self, error: KubeError) -> float:
        """A list or a watch failed. Returns the least number of seconds to wait."""
        self.problem = f"cannot follow {self.resource.plural}: {error}"
        logger.warning("%s", self.problem)
        if isinstance(error, Unavailable) and self._silent_since is None:
            self._silent_since = self.clock()
        return error.retry_after if isinstance(error, TooManyRequests) else 0.0

    def _was_silent(self) -> bool:
        """Whether the server has not answered for so long that its history may be another one."""
        since = self._silent_since
        return since is not None and self.clock() - since >= _LIST_AGAIN_AFTER

    def _list(self) -> None:
        with no_collection():
            listing = self.api.list(
                self.resource,
                namespace=self.namespace,
                label_selector=self.label_selector,
                field_selector=self.field_selector,
                decoder=self.decoder,
            )
            self._take_version(listing.resource_version)
            self.handler.on_replace(listing.items)
        self._silent_since = None
        self.synced.set()

    def _take_version(self, version: str) -> None:
        """Go on from the version of a list. A list is never older than what the server gave before
        (it is read from etcd, or from a cache that has caught up with etcd)."""
        if self._newest and not self._newest <= int(version) < self._newest + _BUMPED:
            logger.warning(
                "etcd was restored from a backup: %s went from version %d to %s",
                self.resource.plural,
                self._newest,
                version,
            )
            self.on_restored()
        self._version, self._newest = version, int(version)

    def _follow(self) -> bool:
        """Watch until the server ends it; False where that was at once and without an event."""
        begun = self.clock()
        seen = False
        seconds = _WATCH_SECONDS * (1.0 + self.draw())
        watch = self.api.watch(
            self.resource,
            resource_version=self._version,
            namespace=self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            decoder=self.decoder,
            timeout=seconds,
        )
        self._answered.clear()  # whoever closes the watch from now on is remembered
        self._watch = watch
        self._silent_since = None
        self.problem = None
        try:
            if self._stopped.is_set():  # stop() may have come before there was a watch to close
                return True
            for event in watch:
                if event.change is not Change.BOOKMARK:
                    self.handler.on_event(event.change, event.object)
                self._version = event.object["metadata"]["resourceVersion"]
                self._newest = int(self._version)
                if not seen:
                    seen = True
                    self._backoff.reset()
        except KubeError as error:
            # Not a connection that broke: the next watch from here may get the same error.
            if error.status and not isinstance(error, TooManyRequests):
                self._version = ""
            raise
        finally:
            self._watch = None
            watch.close()
        worked = seen or self.clock() - begun >= _SHORT_WATCH
        if worked:
            self._backoff.reset()
        return worked
