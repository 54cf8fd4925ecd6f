"""An upper bound for the policies.

An allocator that may move every running job at each arrival grants a job exactly if all jobs that
run with it can be packed anew. For DRS sizes 1, 3 and 6 the least number of cards is found
by counting (the sizes divide one another); for shared slices Martello and Toth's bound L2 is used,
which is never more than the least number: where it is less, the bound is only the higher.

The offline optimum of the static case needs no reckoning: no card grants more than its slices, and
where whole cards make up most of what is asked, giving out those and what fills a card exactly
grants all of them.
"""

from __future__ import annotations

import math
from collections import Counter

from bench.cards import SLICES
from bench.trace import Job


class Repacking:
    """Jobs that run on `cards` cards, free to move."""

    def __init__(self, cards: int) -> None:
        self._cards = cards
        self._sizes: dict[str, Counter[int]] = {
            mode: Counter() for mode in ("whole", "shared", "drs")
        }
        self._running: dict[int, Job] = {}

    def start(self, number: int, job: Job) -> bool:
        self._sizes[job.mode][job.slices] += 1
        if self._needed() > self._cards:
            self._sizes[job.mode][job.slices] -= 1
            return False
        self._running[number] = job
        return True

    def stop(self, number: int) -> None:
        job = self._running.pop(number)
        self._sizes[job.mode][job.slices] -= 1

    def _needed(self) -> int:
        sizes = self._sizes
        return sizes["whole"].total() + least_cards(sizes["shared"]) + least_cards(sizes["drs"])


def least_cards(sizes: Counter[int]) -> int:
    """At least so many cards hold shares of these sizes: L2 (Martello and Toth, 1990), which for
    sizes 1, 3 and 6 alone is exact."""
    return max(_l2(sizes, small) for small in range(SLICES // 2 + 1))


def _l2(sizes: Counter[int], small: int) -> int:
    """Shares above 6 - `small` are alone with smaller ones left out, those above 3 need a card
    each, and the others down to `small` go beside the latter as far as there is room."""
    alone = sum(count for size, count in sizes.items() if size > SLICES - small)
    large = {size: count for size, count in sizes.items() if SLICES // 2 < size <= SLICES - small}
    room = sum((SLICES - size) * count for size, count in large.items())
    rest = sum(size * count for size, count in sizes.items() if small <= size <= SLICES // 2)
    needed = alone + sum(large.values())
    return needed + max(0, math.ceil((rest - room) / SLICES))
