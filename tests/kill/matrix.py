"""Plays the matrix with a few nodes at a time."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.kill.catalog import BY_NAME, EVERYTHING
from tests.kill.cells import Cell, Result, all_cells
from tests.kill.grants import Kind
from tests.kill.killing import kill, record
from tests.kill.node import Node
from tests.kill.operations import Operation

T = TypeVar("T")
R = TypeVar("R")

Work = tuple[Operation, Kind]

_TRIES = 3


class Matrix:
    """Does `count` things at a time, each on a node of its own; `new` makes a node, one that serves
    its cards as a device plugin where it is told so. One that is left in disorder is not used
    again. What goes wrong is told to `tell` at once, too: a run is long."""

    def __init__(
        self, count: int, new: Callable[[bool], Node], tell: Callable[[str], None]
    ) -> None:
        self._count = count
        self._new = new
        self._tell = tell
        self._idle: dict[bool, queue.SimpleQueue[Node]] = {
            plugin: queue.SimpleQueue() for plugin in (False, True)
        }
        self.failures: dict[str, str] = {}

    def cells(self, kinds: Callable[[Operation], Iterable[Kind]]) -> list[Cell]:
        """All cells of the operations with these kinds, from one undisturbed run of each."""
        works = [(operation, kind) for operation in EVERYTHING for kind in kinds(operation)]
        found = self._each(
            works, _operation_of_work, _name_of_work, lambda node, work: record(node, *work)
        )
        return [
            cell
            for (operation, kind), moments in found
            for cell in all_cells(operation.name, kind, moments, operation.nexts)
        ]

    def kill(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Result]]:
        """Play the cells, and give what became of each; what went wrong is told, and in `failures`.

        How often an agent passes a point depends on its threads and on how full its journal is,
        so a moment that was seen once may not come again: such a cell gets a few tries.
        """
        left, missed = list(cells), dict[Cell, Result]()
        for _ in range(_TRIES):
            missed = {}
            for cell, result in self._each(left, _operation_of_cell, str, kill):
                if result.reached:
                    yield cell, result
                else:
                    missed[cell] = result
            left = list(missed)
        yield from missed.items()

    def _node(self, plugin: bool) -> Node:
        try:
            return self._idle[plugin].get_nowait()
        except queue.Empty:
            return self._new(plugin)

    def _each(
        self,
        items: Iterable[T],
        operation: Callable[[T], Operation],
        name: Callable[[T], str],
        step: Callable[[Node, T], R],
    ) -> Iterator[tuple[T, R]]:
        def run(item: T) -> list[tuple[T, R]]:
            plugin = operation(item).plugin
            node = self._node(plugin)
            try:
                result = step(node, item)
            # One of many, told with the others at the end: whatever it was, they go on.
            except Exception as error:  # noqa: BLE001 - see above
                self.failures[name(item)] = f"{error!r}\n{_end_of_log(node)}"
                self._tell(f"{name(item)}: {error!r}")
                node.down()
                return []
            self._idle[plugin].put(node)
            return [(item, result)]

        with ThreadPoolExecutor(self._count) as pool:
            try:
                for results in pool.map(run, items):
                    yield from results
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)  # a long run is not played to its end
                raise


def _operation_of_work(work: Work) -> Operation:
    return work[0]


def _operation_of_cell(cell: Cell) -> Operation:
    return BY_NAME[cell.operation]


def _name_of_work(work: Work) -> str:
    operation, kind = work
    return f"{operation} / {kind}, undisturbed"


def _end_of_log(node: Node) -> str:
    return "\n".join(node.log().splitlines()[-40:])
