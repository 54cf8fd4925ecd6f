"""How a measurement is printed: a table for people, and one JSON object on the last line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

_BEGUN = time.monotonic()


def say(line: str) -> None:
    """On the standard error stream, with the seconds since the beginning."""
    print(f"{time.monotonic() - _BEGUN:6.1f} s  {line}", file=sys.stderr, flush=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print `rows` under `columns`, numbers to the right."""
    cells = [[_text(each) for each in row] for row in rows]
    widths = [max(len(row[n]) for row in [list(columns), *cells]) for n in range(len(columns))]
    print(f"\n{title}")
    for row in [list(columns), *cells]:
        line = [
            each.ljust(width) if not n else each.rjust(width)
            for n, (each, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(line).rstrip())


def result(figures: Mapping[str, Any]) -> None:
    """The last line."""
    print(json.dumps(figures, sort_keys=True), flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `values` lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _text(value: object) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
