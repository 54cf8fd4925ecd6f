"""Commands in flight (kube-scheduler: pkg/scheduler/backend/api_dispatcher): many at a time, never
two for one object.

The deciding thread dispatches them and takes their answers from the event queue. In between, it
decides nothing about the objects that they concern.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor

from controller.cache.keys import Key, uid_of
from controller.write.commands import (
    Answer,
    Command,
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    ReadVolumes,
    ReleaseAllocation,
    SettleUncertain,
    TakeoverCommand,
    WriteAllocation,
    WriteDone,
)
from controller.write.writer import Writer


class WriteDispatcher:
    """At most `limit` commands at a time, in the threads of `pool`; `on_done` is called there."""

    def __init__(
        self, pool: Executor, writer: Writer, on_done: Callable[[WriteDone], None], *, limit: int
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._on_done = on_done
        self._limit = limit
        self._commands: set[Command] = set()
        self._uids: set[str] = set()

    def has_room(self) -> bool:
        """Whether one more may be dispatched. What waits for room is decided later, on newer
        facts."""
        return len(self._commands) < self._limit

    def in_flight(self, uids: Iterable[str]) -> bool:
        """Whether a command for any of these objects has not ended."""
        return not self._uids.isdisjoint(uids)

    def is_pending(self, key: Key) -> bool:
        """Whether a command that was dispatched for the key has not ended."""
        return any(command.key == key for command in self._commands)

    def dispatch(self, command: Command) -> None:
        """Execute it in another thread; its `WriteDone` is an event. None of its objects may be
        in flight."""
        uids = _objects_of(command)
        assert not self.in_flight(uids)
        self._commands.add(command)
        self._uids.update(uids)
        self._pool.submit(contextvars.copy_context().run, self._execute, command)

    def finish(self, command: Command) -> None:
        """The deciding thread has taken the command's answer: its objects are free again."""
        self._commands.discard(command)
        self._uids.difference_update(_objects_of(command))

    def execute_all(self, commands: Iterable[TakeoverCommand]) -> list[Answer]:
        """Execute them, several at a time, and wait for all answers, in the order of the
        commands."""
        pending = [self._pool.submit(self._writer.execute, command) for command in commands]
        return [future.result() for future in pending]

    def stop(self, timeout: float) -> bool:
        """Dispatch no more; whether all commands in flight have ended within `timeout` seconds."""
        ended = threading.Thread(target=self._pool.shutdown, name="writes-end", daemon=True)
        ended.start()
        ended.join(timeout)
        return not ended.is_alive()

    def _execute(self, command: Command) -> None:
        self._on_done(WriteDone(command, self._writer.execute(command)))


def _objects_of(command: Command) -> tuple[str, ...]:
    """What the command is about, by UID: no two commands for one object are in flight."""
    match command:
        case WriteAllocation():
            return uid_of(command.pod), *map(uid_of, command.claims)
        case ReleaseAllocation() | SettleUncertain():
            return tuple(map(uid_of, command.claims))
        case LiftGate() | ReadVolumes():
            return (uid_of(command.pod),)
        case CreateTemplate() | DeleteTemplate():
            return (str(command.key),)  # a new one has no UID before the server's answer
