"""What was measured, by scenario: one table, a scenario in each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.report import table


class Measure(NamedTuple):
    """A row: what is measured, on how many nodes, how many of whose cards are in use (0 to 1), and
    what a pod requests."""

    what: str
    nodes: int
    full: float
    ask: str


@dataclass(slots=True)
class Figures:
    """Numbers by row and scenario; rows and columns in the order in which they first came."""

    rows: dict[Measure, dict[str, float]] = field(default_factory=dict)

    def add(self, measure: Measure, scenario: str, value: float | None) -> None:
        """None is left out."""
        if value is not None:
            self.rows.setdefault(measure, {})[scenario] = value

    def print_table(self, title: str, scenarios: Sequence[str]) -> None:
        """Rows of one kind stand together, so that sizes can be compared."""
        kinds = list(dict.fromkeys(measure.what for measure in self.rows))
        ordered = sorted(self.rows, key=lambda measure: kinds.index(measure.what))
        table(
            title,
            ("", "nodes", "in use", "a pod's", *scenarios),
            [
                (
                    *(measure.what, measure.nodes, f"{measure.full:.0%}", measure.ask),
                    *(_rounded(self.rows[measure].get(name)) for name in scenarios),
                )
                for measure in ordered
            ],
        )

    def as_json(self) -> list[dict[str, Any]]:
        return [measure._asdict() | {"by": by} for measure, by in self.rows.items()]


def _rounded(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
