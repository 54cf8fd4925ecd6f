"""One object for equal values.

Objects of a cluster have equal parts: taints, tolerations, node selectors, the containers of
replicas. A program that stores tens of thousands of objects stores each such part once.
"""

from __future__ import annotations

import marshal
from collections.abc import Hashable
from typing import Any, Final

_MOST_KNOWN: Final = 1 << 14  # values, also those that never recur
# Bytes, which take ten times as much as objects. Most parts of pods never recur, and stay after
# them. Parts that do recur are interned again after all are forgotten, for some thousand objects.
_LONGEST: Final = 1 << 16
_MOST_BYTES: Final = 1 << 20
_WITHOUT_REFERENCES: Final = 2  # marshal's version: equal values have equal bytes


class Interner:
    """Safe for several threads. Nobody may alter what it returns: it is a part of several
    objects."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._bytes = 0  # about: two threads may add at the same time

    def __call__(self, value: Any) -> Any:
        """A value as JSON has it, equal to `value` to the order of its fields; parts of it are not
        shared by themselves."""
        if len(self._known) >= _MOST_KNOWN or self._bytes > _MOST_BYTES:
            self._known.clear()
            self._bytes = 0
        # Unlike == the bytes differ for 1, 1.0 and True, and for another order of fields.
        key = value if type(value) is str else marshal.dumps(value, _WITHOUT_REFERENCES)
        if len(key) > _LONGEST:
            return value
        if key not in self._known:
            self._bytes += len(key)
        return self._known.setdefault(key, value)
