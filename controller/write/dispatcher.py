"""Writes under way, and reads that a decision waits for: many at a time, never two for one object.

The deciding thread begins them and learns how they ended; in between the objects that they
concern are busy, and nothing is decided about those.
"""

from __future__ import annotations

import contextvars
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from typing import TypeVar

from controller.cache.keys import Key
from controller.queue.event_queue import Finished, Inbox
from dra_driver.model.claim import Object

T = TypeVar("T")


class Writes:
    """`limit` writes at a time, in the threads of `executor`."""

    def __init__(self, executor: Executor, inbox: Inbox, *, limit: int) -> None:
        self._executor = executor
        self._inbox = inbox
        self._limit = limit
        self._busy: set[str] = set()
        self._under_way: Counter[Key] = Counter()

    def has_room(self) -> bool:
        """Whether one more may begin. What waits for room is decided later, on newer facts."""
        return self._under_way.total() < self._limit

    def is_under_way(self, key: Key) -> bool:
        """Whether a write that was begun for the key has not ended yet."""
        return key in self._under_way

    def is_busy(self, uids: Iterable[str]) -> bool:
        """Whether a write is under way for any of these objects."""
        return not self._busy.isdisjoint(uids)

    def begin(
        self,
        key: Key,
        uids: Collection[str],
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Do `work` in another thread, and then in the deciding thread `done` with what it gave;
        what it raised counts as a failure of `key`, after `failed` was called instead. The objects
        `uids` must not be busy."""
        assert not self.is_busy(uids)
        self._busy.update(uids)
        self._under_way[key] += 1
        future = self._executor.submit(contextvars.copy_context().run, work)
        future.add_done_callback(
            lambda ended: self._inbox.put(
                Finished(key, partial(self._end, key, uids, ended, done, failed))
            )
        )

    def for_each(self, call: Callable[[Object], None], items: Iterable[Object]) -> None:
        """Call it for all items, several at a time; returns when all are done. Raises what one
        of the calls raised."""
        for ended in [self._executor.submit(call, each) for each in items]:
            ended.result()

    def stop(self, timeout: float) -> bool:
        """Begin no other; whether all that were under way have ended within `timeout` seconds."""
        ended = threading.Thread(target=self._executor.shutdown, name="writes-end", daemon=True)
        ended.start()
        ended.join(timeout)
        return not ended.is_alive()

    def _end(
        self,
        key: Key,
        uids: Collection[str],
        ended: Future[T],
        done: Callable[[T], None],
        failed: Callable[[], None],
    ) -> None:
        self._busy.difference_update(uids)
        self._under_way -= Counter([key])
        if ended.exception() is not None:
            failed()
        done(ended.result())
