"""The seam through which every effect of the node side passes.

An effect is anything that outlives the process or leaves it: a journal write, a rename, an
efsmi call, a CDI file, a write to the API server, a reply to the kubelet. Production code
wraps each in ``with effects(Point.X):``; a test passes an ``Effects`` of its own that kills
the process, delays or raises before or after the effect took place.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Point(StrEnum):
    """Every named effect. A fault can be put before and after each."""

    JOURNAL_CREATE = "journal.create"
    JOURNAL_APPEND = "journal.append"
    JOURNAL_SYNC = "journal.sync"
    JOURNAL_COMPACT_WRITE = "journal.compact-write"
    JOURNAL_COMPACT_RENAME = "journal.compact-rename"
    JOURNAL_RESERVE = "journal.reserve"
    JOURNAL_SET_ASIDE = "journal.set-aside"
    CDI_WRITE = "cdi.write"
    CDI_RENAME = "cdi.rename"
    CDI_REMOVE = "cdi.remove"
    CACHE_WRITE = "cache.write"
    CACHE_RENAME = "cache.rename"
    EFSMI_CALL = "efsmi.call"
    API_WRITE = "api.write"
    REPLY_PREPARE = "reply.prepare"
    REPLY_UNPREPARE = "reply.unprepare"
    REPLY_ALLOCATE = "reply.allocate"
    PLUGIN_REGISTER = "plugin.register"
    SOCKET_BIND = "socket.bind"
    SOCKET_REMOVE = "socket.remove"


class Effects:
    """Does nothing around an effect. Override `before` and `after` to place a fault."""

    def before(self, point: Point) -> None:
        """Called when the effect has not begun."""

    def after(self, point: Point) -> None:
        """Called when the effect has taken place; not called when it raised."""

    def __call__(self, point: Point) -> Around:
        return Around(self, point)


NO_FAULTS: Final = Effects()


class Around:
    """A class, not a generator, which takes longer: a prepare has many of these."""

    __slots__ = ("_effects", "_point")

    def __init__(self, effects: Effects, point: Point) -> None:
        self._effects = effects
        self._point = point

    def __enter__(self) -> None:
        self._effects.before(self._point)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._effects.after(self._point)
