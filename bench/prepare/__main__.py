"""``make bench-prepare``: ours and the Go plugin alternately, so that noise hits both.

Needs root. One claim a call, over one connection, while 48 other claims are held. Each plugin reads
the claim from a real API server. Ours syncs the disk once to prepare and once to unprepare, the
plugin on upstream's helper twice each. With ``--sync-delay 5`` each sync takes 5 ms longer, as on
the disk of a cloud.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from bench.prepare.caller import Timings, build_program
from bench.prepare.place import Place, partitions, place, slices, whole_cards
from bench.prepare.plugins import Plugin, start_go, start_ours
from bench.report import percentile, result, table
from dra_driver.model.claims.claim import ClaimRef

_HELD_OF_EACH: Final = 6  # of eight cards
_TOGETHER_OF_EACH: Final = 8
_SINGLE_ROUNDS: Final = 20
_TOGETHER_ROUNDS: Final = 2
_CYCLE_CALLERS: Final = 8
_CYCLE_ROUNDS: Final = 40


@dataclass(slots=True)
class Figures:
    """Of one plugin: calls in milliseconds, cycles a second of each round."""

    single: list[float] = field(default_factory=list)
    single_unprepare: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    cycles: list[float] = field(default_factory=list)
    rss_mib: float = 0.0

    def rows(self) -> dict[str, float]:
        return {
            "p50_ms": percentile(self.single, 0.5),
            "p99_ms": percentile(self.single, 0.99),
            "unprepare_p50_ms": percentile(self.single_unprepare, 0.5),
            "unprepare_p99_ms": percentile(self.single_unprepare, 0.99),
            "c64_p50_ms": percentile(self.together, 0.5),
            "cycles_per_s": statistics.median(self.cycles),
            "rss_mib": self.rss_mib,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sync-delay", type=float, default=0.0, help="added to each sync, in ms")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each plugin")
    given = parser.parse_args()
    sync_delay = given.sync_delay / 1000
    program = build_program(_report)
    with place(_report) as found:
        with ExitStack() as stack:
            plugins = []
            for start in (start_ours, start_go):
                plugins.append(start(found, program, sync_delay=sync_delay))
                stack.callback(plugins[-1].stop)
            figures = _measure(found, plugins, given.rounds)
        divided = start_ours(found, program, "bench.prepare.partitioned")
        try:
            made = divided.caller.run(
                found.allocate(partitions()), callers=8, do="prepare", together=True
            )
        finally:
            divided.stop()
    _print(figures, made)


def _measure(found: Place, plugins: Sequence[Plugin], rounds: int) -> dict[str, Figures]:
    held = found.allocate(slices(_HELD_OF_EACH))
    many = found.allocate(slices(_TOGETHER_OF_EACH))
    few = [*found.allocate(whole_cards()), *many[:8]]
    figures = {plugin.name: Figures() for plugin in plugins}
    for plugin in plugins:
        plugin.caller.run(held, do="prepare")
        plugin.caller.run(few)  # what happens once in a process's life is not what is measured
    for number in range(rounds):
        for plugin in plugins:
            _report(f"round {number + 1} of {rounds}: {plugin.name}")
            _round(plugin, figures[plugin.name], few, many)
    return figures


def _round(
    plugin: Plugin, figures: Figures, few: Sequence[ClaimRef], many: Sequence[ClaimRef]
) -> None:
    alone = plugin.caller.run(few, rounds=_SINGLE_ROUNDS)
    figures.single += alone.prepare
    figures.single_unprepare += alone.unprepare
    together = plugin.caller.run(many, callers=len(many), rounds=_TOGETHER_ROUNDS, together=True)
    figures.together += together.prepare
    busy = plugin.caller.run(few, callers=_CYCLE_CALLERS, rounds=_CYCLE_ROUNDS)
    figures.cycles.append(len(busy.unprepare) / busy.seconds)
    figures.rss_mib = plugin.rss_mib


def _print(figures: dict[str, Figures], made: Timings) -> None:
    names = list(figures)
    found = {name: each.rows() for name, each in figures.items()}
    rows = [(key, *(found[name][key] for name in names)) for key in found[names[0]]]
    table("Prepare and unprepare, 48 claims held", ("", *names), rows)
    table("Eight DRS instances at once, 200 ms each", ("", "ours"), [("ms", 1000 * made.seconds)])
    rounded = {
        name: {key: round(value, 3) for key, value in each.items()} for name, each in found.items()
    }
    result({**rounded, "drs8_ms": round(1000 * made.seconds)})


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
