"""The seeds of everything that is drawn in tests.

Most tests draw by `SEED`, which is the same in every run without `GCU_SEED`: what passed once of a
commit passes again. Those of tests/property have more cases than each change needs: a `Sample` of
them plays some in every run, and others each day. `GCU_SEED` plays those from that seed on instead,
`GCU_CASES` so many (``all``: as many as a soak).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

SEED: Final = int(os.environ.get("GCU_SEED", "0"))

DAY: Final = SEED or datetime.now(UTC).toordinal()
"""What chooses the cases of a day, where `SEED` does not."""

CASES: Final = os.environ.get("GCU_CASES", "")

_SEEDS_OF_A_DAY: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Cases that are told by their seeds. A run plays `always` and `of_the_day`, a soak `soak`;
    `asked` overrules them: ``all`` for the soak, or a number of cases."""

    always: int
    of_the_day: int
    soak: int
    asked: str = CASES

    def blocks(self, size: int) -> list[range]:
        """The seeds, up to `size` in a block."""
        return [part[at : at + size] for part in self._parts() for at in range(0, len(part), size)]

    def _parts(self) -> Sequence[range]:
        if self.asked:
            count = self.soak if self.asked == "all" else int(self.asked)
            return (range(SEED, SEED + count),)
        if SEED:
            return (range(SEED, SEED + self.always + self.of_the_day),)
        first = DAY * _SEEDS_OF_A_DAY
        return range(self.always), range(first, first + self.of_the_day)


@contextmanager
def told(seed: int) -> Iterator[None]:
    """Around the case of a seed: what it raises says how to play it again."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"again: GCU_SEED={seed} GCU_CASES=1, and this test")
        raise
