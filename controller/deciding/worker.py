"""The one thread that decides: news in, then the keys that fall due, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from controller.allocator.allocate import catch_up
from controller.cluster.cache import WATCHED, Changed, ClusterCache
from controller.deciding.narrator import Narrator
from controller.deciding.reconciler import Reconciler
from controller.deciding.takeover import Takeover
from controller.deciding.triggers import Triggers
from controller.leadership.fence import Fence, NotLeader
from controller.work.agenda import Agenda, Key
from controller.work.inbox import Event, Finished, Inbox, News, Replaced
from controller.work.writes import Writes
from dra_driver.background import Background
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.errors import TooManyRequests
from dra_driver.kube.resources import Resource
from dra_driver.model.errors import GcuError
from dra_driver.telemetry.logs import new_call

logger = logging.getLogger(__name__)


class Worker(Background):
    """Follows the cluster always, and acts only while the fence is open and every kind of object
    was listed once. Idle, it waits without a request."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        cache: ClusterCache,
        agenda: Agenda,
        triggers: Triggers,
        reconciler: Reconciler,
        takeover: Takeover,
        writes: Writes,
        fence: Fence,
        narrator: Narrator,
        clock: Callable[[], float],
        draw: Callable[[], float],
    ) -> None:
        super().__init__("worker", interrupt=inbox.wake)
        self._inbox = inbox
        self._cache = cache
        self._agenda = agenda
        self._triggers = triggers
        self._reconciler = reconciler
        self._takeover = takeover
        self._writes = writes
        self._fence = fence
        self._narrator = narrator
        self._clock = clock
        self._draw = draw
        self._listed: set[Resource] = set()
        self._failing: dict[Key, Backoff] = {}
        self._takeover_backoff = Backoff(first=0.1, draw=draw)
        self._takeover_at = 0.0

    def is_synced(self) -> bool:
        """Whether every kind of object was listed once."""
        return len(self._listed) == len(WATCHED)

    def run(self) -> None:
        """The thread's work; returns after `stop`."""
        while not self._stopped.is_set():
            self.turn(self.patience())

    def turn(self, timeout: float | None) -> None:
        """Take in the news, waiting for them up to `timeout` seconds, and look at one key."""
        for news in self._inbox.take(timeout):
            self._learn(news)
        if not self._may_act():
            self._forget()
            return
        if not self._takeover.is_complete():
            self._take_over()
            return
        if not self._writes.has_room():
            return
        key = self._agenda.pop(self._clock())
        if key is None:
            catch_up(self._cache.state())
        else:
            self._attempt(key, partial(self._reconciler.reconcile, key))

    def patience(self) -> float | None:
        """Seconds until there is something to do without news; None where only news help."""
        if not self._may_act():
            return None  # winning the lease wakes the inbox
        complete = self._takeover.is_complete()
        if complete and not self._writes.has_room():
            return None  # the end of a write wakes the inbox
        due = self._agenda.next_due() if complete else self._takeover_at
        return None if due is None else max(0.0, due - self._clock())

    def _may_act(self) -> bool:
        return self.is_synced() and self._fence.is_open()

    def _forget(self) -> None:
        """A follower plans all that it will look at when it leads. What is gone meanwhile needs no
        write, so it is looked at now: else weeks of it would be kept."""
        if not self.is_synced():
            return
        for key in self._agenda.take_out(self._cache.has):
            self._attempt(key, partial(self._reconciler.reconcile, key))

    def _learn(self, news: News) -> None:
        if isinstance(news, Finished):
            self._attempt(news.key, news.settle)
            return
        now = self._clock()
        for changed in self._changes(news):
            for key in self._triggers.of(changed, now):
                self._agenda.add(key, now)

    def _changes(self, news: Replaced | Event) -> list[Changed]:
        if isinstance(news, Replaced):
            self._listed.add(news.resource)
            return self._cache.replace(news.resource, news.items)
        changed = self._cache.apply(news.resource, news.change, news.object)
        return [] if changed is None else [changed]

    def _take_over(self) -> None:
        if self._clock() < self._takeover_at:
            return
        try:
            self._takeover.run()
        except NotLeader as error:
            logger.info("the term ended before it began: %s", error)
        except GcuError as error:
            delay = self._takeover_backoff.next()
            self._takeover_at = self._clock() + delay
            self._narrator.takeover_failed(error, delay)
        else:
            self._takeover_backoff.reset()

    def _attempt(self, key: Key, step: Callable[[], None]) -> None:
        with new_call(str(key)):
            try:
                step()
            except NotLeader as error:
                logger.info("%s is left to the leader: %s", key, error)
                self._agenda.add(key, self._clock())
            except GcuError as error:
                self._fail(key, error)
            else:
                if not self._writes.is_under_way(key):
                    self._failing.pop(key, None)

    def _fail(self, key: Key, error: GcuError) -> None:
        backoff = self._failing.setdefault(key, Backoff(first=0.1, draw=self._draw))
        delay = backoff.next()
        if isinstance(error, TooManyRequests):
            delay = max(delay, error.retry_after)
        self._narrator.failed(key, error, delay)
        self._agenda.add(key, self._clock() + delay)
