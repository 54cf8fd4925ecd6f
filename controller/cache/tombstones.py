"""What was deleted lately, so that an answer or a list of before that brings nothing back."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_REMEMBERED: Final = 16_384  # more than a cluster deletes while a write or a list takes


class Tombstones:
    """UIDs; no object ever has another one's."""

    def __init__(self) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        """The object is gone, by the word of its watch."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > _REMEMBERED:
            self._uids.popitem(last=False)

    def discard(self, uid: str) -> None:
        """It is there after all, by the same word: another label has hidden it."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids
