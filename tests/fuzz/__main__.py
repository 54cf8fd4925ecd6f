"""``make fuzz``: many inputs to each parser, or one again; a table of how they fared."""

from __future__ import annotations

import argparse
import resource
import secrets
import sys
import time

from tests.fuzz.engine import Flaw, Subject, Tally, play
from tests.fuzz.subjects import SUBJECTS
from tests.unit.node.folders import fast_folder

_BLOCK = 10_000
_MOST_MEMORY = 2 << 30  # bytes of address space, of which the libraries take most


def main() -> int:
    options = _options()
    chosen = options.parser or list(SUBJECTS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}, {options.inputs} inputs each")
    print(f"{'parser':24}{'taken':>10}{'refused':>10}{'inputs/s':>10}{'slowest':>12}{'RSS':>10}")
    flaws = 0
    for name in chosen:
        start = time.monotonic()
        try:
            tally = _play(SUBJECTS[name], options.first, options.inputs, seed)
        except Flaw as flaw:
            print(f"{name:24}{flaw}", flush=True)
            flaws += 1
        else:
            print(_row(name, tally, time.monotonic() - start), flush=True)
    return 1 if flaws else 0


def _play(subject: Subject, first: int, inputs: int, seed: int) -> Tally:
    """Block by block, each in a new folder, so that one that grows costs the next nothing."""
    total = Tally()
    for start in range(first, first + inputs, _BLOCK):
        numbers = range(start, min(start + _BLOCK, first + inputs))
        with fast_folder() as folder:
            tally = play(subject, numbers, seed=seed, folder=folder)
        slower = max(total, tally, key=lambda each: each.slowest)
        total = Tally(
            total.taken + tally.taken,
            total.refused + tally.refused,
            slower.slowest,
            slower.slowest_number,
        )
    return total


def _row(name: str, tally: Tally, seconds: float) -> str:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{name:24}{tally.taken:>10}{tally.refused:>10}{tally.inputs / seconds:>10.0f}"
        f"{tally.slowest * 1000:>9.1f} ms{memory:>6.0f} MiB"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many for each parser")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, help="of all inputs; by default another each time")
    parser.add_argument("--parser", action="append", choices=SUBJECTS, help="this one only")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
