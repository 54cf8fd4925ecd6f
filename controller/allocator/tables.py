"""Answers by question and node, kept until the node changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from controller.allocator.changes import ALL_NODES

Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")

_MOST_TABLES = 16  # a table has an entry for each node


class Tables(Generic[Question, Answer]):
    """One table for each question that was asked lately."""

    def __init__(self) -> None:
        self._tables: OrderedDict[Question, dict[str, Answer]] = OrderedDict()

    def of(self, question: Question) -> dict[str, Answer]:
        """The table, to be read and filled by node."""
        found = self._tables.get(question)
        if found is None:
            found = self._tables[question] = {}
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(question)
        return found

    def forget(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            if node == ALL_NODES:
                self._tables.clear()
            for table in self._tables.values():
                table.pop(node, None)
