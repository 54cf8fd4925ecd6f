"""Plays the matrix with a few nodes at a time."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.kill.cells import Cell, Result, all_cells
from tests.kill.grants import Kind
from tests.kill.killing import kill, record
from tests.kill.node import Node
from tests.kill.operations import OPERATIONS, Operation

T = TypeVar("T")
R = TypeVar("R")

Work = tuple[Operation, Kind]

_TRIES = 3


class Matrix:
    """Runs on `nodes`, each with one thing at a time; `renew` makes a node for one that is left
    in disorder."""

    def __init__(self, nodes: Sequence[Node], renew: Callable[[], Node]) -> None:
        self._nodes: queue.SimpleQueue[Node] = queue.SimpleQueue()
        for node in nodes:
            self._nodes.put(node)
        self._count = len(nodes)
        self._renew = renew
        self.failures: dict[str, str] = {}

    def cells(self, kinds: Callable[[Operation], Iterable[Kind]]) -> list[Cell]:
        """All cells of the operations with these kinds, from one undisturbed run of each."""
        works = [(operation, kind) for operation in OPERATIONS for kind in kinds(operation)]
        found = self._each(works, _name_of_work, lambda node, work: record(node, *work))
        return [
            cell
            for (operation, kind), moments in found
            for cell in all_cells(operation.name, kind, moments)
        ]

    def kill(self, cells: Iterable[Cell]) -> list[tuple[Cell, Result]]:
        """Play the cells; what went wrong is in `failures`.

        How often an agent passes a point depends on its threads and on how full its journal is,
        so a moment that was seen once may not come again: such a cell gets a few tries.
        """
        results: dict[Cell, Result] = {}
        left = list(cells)
        for _ in range(_TRIES):
            played = list(self._each(left, str, kill))
            results.update(played)
            left = [cell for cell, result in played if not result.reached]
        return list(results.items())

    def _each(
        self, items: Iterable[T], name: Callable[[T], str], step: Callable[[Node, T], R]
    ) -> Iterator[tuple[T, R]]:
        def run(item: T) -> list[tuple[T, R]]:
            node = self._nodes.get()
            try:
                return [(item, step(node, item))]
            # One of many, told with the others at the end: whatever it was, they go on.
            except Exception as error:  # noqa: BLE001 - see above
                self.failures[name(item)] = f"{error!r}\n{_end_of_log(node)}"
                node.down()
                node = self._renew()
                return []
            finally:
                self._nodes.put(node)

        with ThreadPoolExecutor(self._count) as pool:
            for results in pool.map(run, items):
                yield from results


def _name_of_work(work: Work) -> str:
    operation, kind = work
    return f"{operation} / {kind}, undisturbed"


def _end_of_log(node: Node) -> str:
    return "\n".join(node.log().splitlines()[-40:])
