"""``make mutants``: faults drawn from the programs' code, and which test finds each.

For each mutant the tests beside its file run first, then the suite, up to the first failure. The
checkout itself is never changed. To compare two states of the suite, keep the mutants with --write
and play them to the other one with --read and --checkout. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutants.draw import draw, sources
from tests.mutants.mutant import Mutant, as_json, from_json, line_of
from tests.mutants.play import NOT_THERE, SUITE, SURVIVED, SuiteFails, Verdict, stage

_CHECKOUT = Path(__file__).parents[2]
_COUNT = 40
_LIMIT = 1800


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    if options.read is None:
        mutants = draw(sources(_CHECKOUT), seed=seed, count=options.count)
        print(f"seed {seed}, {len(mutants)} mutants", flush=True)
    else:
        mutants = from_json(options.read.read_text(encoding="utf-8"))
        print(f"{len(mutants)} mutants of {options.read}", flush=True)
    if options.write is not None:
        options.write.write_text(as_json(mutants), encoding="utf-8")
    if options.list:
        _list(mutants, options.checkout)
        return 0
    try:
        verdicts = _play(mutants, options)
    except SuiteFails as failure:
        print(failure, file=sys.stderr)
        return 1
    print(json.dumps(_summary(verdicts, None if options.read else seed)), flush=True)
    return 0


def _list(mutants: Sequence[Mutant], checkout: Path) -> None:
    for mutant in mutants:
        path = checkout / mutant.file
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        edit = mutant.edit(source)
        print(_row(mutant, 0 if edit is None else line_of(source, edit), mutant.kind))


def _play(mutants: Sequence[Mutant], options: argparse.Namespace) -> list[Verdict]:
    """A row is printed as soon as it is known."""
    suite = [tuple(shlex.split(each)) for each in options.suite or ()] or SUITE
    verdicts = []
    with stage(options.checkout, suite, near=not options.suite_only, limit=options.limit) as played:
        if not options.unchecked:
            played.check()
        for mutant in mutants:
            verdict = played.play(mutant)
            verdicts.append(verdict)
            row = _row(mutant, verdict.line, verdict.found_by)
            print(f"{verdict.seconds:6.0f} s  {row}", flush=True)
    return verdicts


def _row(mutant: Mutant, line: int, found_by: str) -> str:
    return f"{f'{mutant.file}:{line}':60}  {mutant!s:60}  {found_by}"


def _summary(verdicts: Sequence[Verdict], seed: int | None) -> dict[str, Any]:
    """`seed` is None for mutants that were read from a file."""
    counted = Counter(each.found_by for each in verdicts)
    return {
        "seed": seed,
        "found": sum(each.was_found for each in verdicts),
        "survived": counted[SURVIVED],
        "not_there": counted[NOT_THERE],
        "seconds": round(sum(each.seconds for each in verdicts)),
        "mutants": [
            {
                "place": f"{each.mutant.file}:{each.line}",
                "function": each.mutant.name,
                "kind": each.mutant.kind,
                "change": str(each.mutant),
                "found_by": each.found_by,
                "seconds": round(each.seconds, 1),
            }
            for each in verdicts
        ],
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the drawing; by default another each time")
    parser.add_argument("--count", type=int, default=_COUNT, help=f"mutants to draw ({_COUNT})")
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the mutants in this file")
    parser.add_argument("--read", type=Path, metavar="FILE", help="play these, and draw none")
    parser.add_argument("--list", action="store_true", help="print the mutants, and play none")
    parser.add_argument(
        "--checkout",
        type=Path,
        default=_CHECKOUT,
        metavar="DIR",
        help="the state of code and tests that is played; mutants are drawn from this one",
    )
    parser.add_argument(
        "--suite",
        action="append",
        metavar="CMD",
        help="a command that fails if it finds a fault, in place of pytest for the tiers unit, "
        "component and property; several are run in their order",
    )
    parser.add_argument(
        "--suite-only", action="store_true", help="do not run the tests beside the file first"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=_LIMIT,
        metavar="SECONDS",
        help=f"for all tests of one mutant; one that takes longer counts as found ({_LIMIT})",
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="do not run the suite without a mutant at first"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
