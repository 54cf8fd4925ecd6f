"""In which part of the scheduling queue a key is."""

from __future__ import annotations

from enum import StrEnum

from controller.cache.keys import Key
from controller.queue.scheduling_queue import SchedulingQueue


class Part(StrEnum):
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"


def part_of(queue: SchedulingQueue, key: Key) -> Part | None:
    if key in queue._active:
        return Part.ACTIVE
    if key in queue._unschedulable:
        return Part.UNSCHEDULABLE
    return Part.BACKOFF if key in queue._due_at else None
