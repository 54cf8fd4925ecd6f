"""Results that are remembered for the keys that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")


class Recent(OrderedDict[_Key, _Result]):
    """The results of the `most` keys that were asked for last, the last one at the end. No result
    is None."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def of(self, key: _Key, find: Callable[[], _Result]) -> _Result:
        """The result for the key; `find` is called where it is not remembered."""
        result = self.get(key)
        if result is None:
            result = self[key] = find()
            if len(self) > self._most:
                self.popitem(last=False)
        self.move_to_end(key)
        return result
