"""Commands in flight (kube-scheduler: pkg/scheduler/backend/api_dispatcher): many at a time, never
two for one object.

The deciding thread dispatches the commands and takes their answers from the event queue. Until the
answer it decides nothing about the objects of a command.
"""

from __future__ import annotations

import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import NamedTuple, Protocol

from controller.cache.keys import Key, uid_of
from controller.write.commands import Answer, Command, WriteDone
from dra_driver.model.claims.claim import Object


class _Waiting(NamedTuple):
    """A command whose turn has not come."""

    begun: Future[Callable[[], Answer]]
    finish: Callable[[], object]


class CommandExecutor(Protocol):
    """Safe for several threads."""

    def begin(self, command: Command) -> Callable[[], Answer]:
        """Execute what needs no turn among the commands of a sequence, if there is anything. The
        result executes the rest. Neither raises: the answer has the error."""


class WriteDispatcher:
    """At most `limit` commands at a time in the threads of `pool`, where `on_done` is called.

    A claim whose write the server did not answer stays in flight until another command for it has
    ended, whose answer leaves nothing uncertain.
    """

    def __init__(
        self,
        pool: Executor,
        writer: CommandExecutor,
        on_done: Callable[[WriteDone], None],
        *,
        limit: int,
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._on_done = on_done
        self._limit = limit
        self._keys: Counter[Key] = Counter()  # of the commands in flight
        self._uids: set[str] = set()  # of their objects
        self._uncertain: dict[str, Object] = {}  # claims by UID
        self._behind: dict[str, deque[_Waiting]] = {}  # by sequence, behind one

    def has_room(self) -> bool:
        """Whether one more command may be dispatched. What waits for room is decided later, on
        newer facts."""
        behind = (each.begun.done() for waiting in self._behind.values() for each in waiting)
        return self._keys.total() - sum(behind) < self._limit

    def has_command(self, key: Key) -> bool:
        """Whether a command for the key has not ended."""
        return self._keys[key] > 0

    def in_flight(self, *objects: Object) -> bool:
        """Whether a write to any of these pods and claims has not ended, or may still arrive."""
        uids = set(map(uid_of, objects))
        return not (uids.isdisjoint(self._uncertain) and uids.isdisjoint(self._uids))

    def uncertain(self) -> list[Object]:
        """The claims whose last write may still arrive. A deleted one and the next one of its name
        may both be among them."""
        return [each for uid, each in self._uncertain.items() if uid not in self._uids]

    def dispatch(self, command: Command) -> None:
        """Execute the command in another thread; its `WriteDone` is an event. No other command may
        concern its objects."""
        uids = _uids(command)
        assert uids.isdisjoint(self._uids)
        self._uids |= uids
        self._keys[command.key] += 1
        in_context = contextvars.copy_context().run
        if command.sequence not in self._behind:
            if command.sequence:
                self._behind[command.sequence] = deque()
            self._pool.submit(in_context, self._execute, command)
            return
        # A pool starts what was submitted first, so nothing waits long for what has begun.
        begun = self._pool.submit(in_context, self._writer.begin, command)
        finish = partial(contextvars.copy_context().run, self._finish, command, begun)
        self._behind[command.sequence].append(_Waiting(begun, finish))

    def finish(self, done: WriteDone) -> None:
        """The deciding thread has taken the answer: the command's objects are free again, claims
        whose write may still arrive excepted."""
        self._uids -= _uids(done.command)
        self._keys[done.command.key] -= 1
        if not self._keys[done.command.key]:
            del self._keys[done.command.key]
        if not done.answer.uncertain:
            for claim in done.command.claims:
                self._uncertain.pop(uid_of(claim), None)
        self._uncertain |= {uid_of(claim): claim for claim in done.answer.uncertain}
        self._go_on(done.command.sequence)

    def stop(self, timeout: float) -> bool:
        """Dispatch no more; whether all commands in flight have ended within `timeout` seconds."""
        ended = threading.Thread(target=self._pool.shutdown, name="writes-end", daemon=True)
        ended.start()
        ended.join(timeout)
        return not ended.is_alive()

    def _go_on(self, sequence: str) -> None:
        """The first command of the sequence has ended: the next one is executed."""
        if behind := self._behind.get(sequence):
            self._pool.submit(behind.popleft().finish)
        else:
            self._behind.pop(sequence, None)

    def _execute(self, command: Command) -> None:
        self._on_done(WriteDone(command, self._writer.begin(command)()))

    def _finish(self, command: Command, begun: Future[Callable[[], Answer]]) -> None:
        self._on_done(WriteDone(command, begun.result()()))


def _uids(command: Command) -> set[str]:
    """The UIDs of the pods and claims that the command concerns."""
    objects = command.claims if command.pod is None else (*command.claims, command.pod)
    return set(map(uid_of, objects))
