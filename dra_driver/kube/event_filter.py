"""Which events are sent. Upstream: EventSourceObjectSpamFilter, client-go tools/record.

Pure: the time is an argument. A *topic* is an object and a reason.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

# A pod and each of its claims are topics. There must be room for all that wait at a time: if a
# topic is forgotten before its next event, the limits begin again.
_REMEMBERED = 65536
_HALF_LIFE = 10.0  # seconds
_LONGEST_WAIT = 60.0  # seconds until there may be room among all events


class Topic(NamedTuple):
    """`regarding` is the object's UID, or another text that identifies it."""

    regarding: str
    reason: str
    namespace: str = ""


class EventLimits(msgspec.Struct, frozen=True):
    """The first `burst` events of a topic are sent at once. The next one waits for `spacing`
    seconds, and each further one twice as long, up to `longest`. The same note is sent again after
    `quiet` seconds at the earliest. After twice `longest` without an event the topic is new again.

    All topics together have `rate` events a second, and `total_burst` at once. Topics with an
    earlier event may only use half of `total_burst`, so that repetitions do not delay new topics.
    A namespace that has lately used a tenth of it may only use three quarters, so that it does not
    delay the events of others.

    The defaults of `burst` and `spacing` are client-go's. `longest` is half of the time for which
    an API server stores an event (``--event-ttl``), so that a present state is always visible.
    """

    burst: int = 25
    spacing: float = 300.0
    longest: float = 1800.0
    quiet: float = 300.0
    rate: float = 25.0
    total_burst: int = 500


class EventFilter:
    """Not for several threads at a time."""

    def __init__(self, limits: EventLimits) -> None:
        self._limits = limits
        self._topics: OrderedDict[Topic, _History] = OrderedDict()
        self._tokens = float(limits.total_burst)
        self._tokens_at = 0.0
        self._next_slot = 0.0
        # By namespace: the number of events, and when they were counted.
        self._lately: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        """How many topics are remembered."""
        return len(self._topics)

    def wait(self, topic: Topic, now: float) -> float:
        """Seconds until an event of the topic may be sent; 0 if it may be sent now. Events that
        wait for the common limit get different times."""
        self._refill(now)
        history = self._topics.get(topic)
        if history is not None:
            left = history.at + self._interval(history) - now
            if left > 0:
                return left
        burst = self._limits.total_burst
        reserve = burst / 4 if self._count(topic.namespace, now) > burst / 10 else 0.0
        if history is not None:
            reserve = burst / 2
        missing = reserve + 1.0 - self._tokens
        if missing <= 0:
            return 0.0
        slot = max(self._next_slot, now + missing / self._limits.rate)
        self._next_slot = min(slot + 1.0 / self._limits.rate, now + _LONGEST_WAIT)
        return slot - now

    def is_due(self, topic: Topic, note: str, now: float) -> bool:
        """Whether the note is to be sent; called when `wait` returns 0."""
        history = self._topics.get(topic)
        if history is None or note not in history.notes:
            return True
        if now - history.notes[note] >= max(self._limits.quiet, self._interval(history)):
            return True
        history.at = now  # the note need not be built again for a while
        self._topics.move_to_end(topic)
        return False

    def on_sent(self, topic: Topic, note: str, now: float) -> None:
        """Count the note, which was sent."""
        history = self._topics.setdefault(topic, _History(now))
        history.count += 1
        history.at = now
        history.notes[note] = now
        history.notes.move_to_end(note)
        while len(history.notes) > self._limits.burst:
            history.notes.popitem(last=False)
        self._topics.move_to_end(topic)
        self._tokens -= 1.0
        self._lately[topic.namespace] = self._count(topic.namespace, now) + 1.0, now
        self._forget(now)

    def _count(self, namespace: str, now: float) -> float:
        """The namespace's latest events; the count halves in `_HALF_LIFE` seconds."""
        count, at = self._lately.get(namespace, (0.0, now))
        found: float = count * 0.5 ** ((now - at) / _HALF_LIFE)
        return found

    def _interval(self, history: _History) -> float:
        over = history.count - self._limits.burst
        if over < 0:
            return 0.0
        return min(self._limits.longest, self._limits.spacing * 2.0 ** min(over, 32))

    def _refill(self, now: float) -> None:
        gained = (now - self._tokens_at) * self._limits.rate
        self._tokens = min(float(self._limits.total_burst), self._tokens + gained)
        self._tokens_at = now

    def _forget(self, now: float) -> None:
        """Drop old topics; the topic with the oldest event is the first."""
        before = now - 2 * self._limits.longest
        while len(self._topics) > _REMEMBERED or next(iter(self._topics.values())).at < before:
            self._topics.popitem(last=False)
        if len(self._lately) > _REMEMBERED:
            self._lately.clear()


@dataclass(slots=True)
class _History:
    """A topic's number of events, the time of the last one, and the latest notes."""

    at: float
    count: int = 0
    notes: OrderedDict[str, float] = field(default_factory=OrderedDict)
