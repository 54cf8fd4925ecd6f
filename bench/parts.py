"""The parts of `make bench-cluster`: each one measures all scenarios on one control plane."""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from bench.burst import burst
from bench.figures import Figures, Measure
from bench.hostile import worst_wait
from bench.prefill import Prefill, free_cards
from bench.programs import Programs, running
from bench.published import Publication
from bench.report import percentile, say
from bench.scenarios import SCENARIOS, Ask, Scenario
from bench.single import seconds_each
from bench.users import Users
from bench.waiting import freed_cards
from dra_driver.kube.client import connect
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.control_plane.attacks import ATTACKS

Measuring = Callable[[int, float, Sequence[str]], None]
"""With so many nodes, whose cards are in use to that share (0 to 1), these scenarios."""

_TAKEN = 0.75  # of the free cards, at most, by the pods of one burst


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts, on one control plane."""

    cluster: Cluster
    chosen: argparse.Namespace
    users: Users
    publication: Publication
    prefill: Prefill
    figures: Figures
    writes: dict[str, object]

    @classmethod
    def on(
        cls,
        cluster: Cluster,
        chosen: argparse.Namespace,
        figures: Figures,
        writes: dict[str, object],
    ) -> Parts:
        api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
        cluster.kubectl("create", "namespace", "attacker")
        users = Users(cluster, api)
        return cls(cluster, chosen, users, Publication(api), Prefill(cluster), figures, writes)

    def measure(self, nodes: int) -> None:
        """All parts with so many nodes."""
        for full in self.chosen.full:
            self._part("bursts", self._bursts, nodes, full)
            self._part("single", self._single, nodes, full)
        self._part("waiting", self._waiting, nodes, 1.0)
        self._part("hostile", self._hostile, nodes, 0.0)

    def _part(self, part: str, measure: Measuring, nodes: int, full: float) -> None:
        if part not in self.chosen.parts:
            return
        for _, names in groupby(self.chosen.scenarios, lambda name: SCENARIOS[name].devices.driver):
            group = list(names)
            self.prefill.fill(SCENARIOS[group[0]].devices, nodes, full)
            say(f"{part}: {nodes} nodes, {full:.0%} in use")
            measure(nodes, full, group)

    @contextmanager
    def _running(self, nodes: int, scenario: Scenario) -> Iterator[Programs]:
        self.publication.publish(scenario.devices, range(nodes))
        with running(
            self.cluster, scenario, f"--writes-in-flight={self.chosen.writes}"
        ) as programs:
            yield programs

    def _bursts(self, nodes: int, full: float, group: Sequence[str]) -> None:
        pods = min(self.chosen.pods, int(_TAKEN * free_cards(nodes, full)))
        for name in group:
            scenario = SCENARIOS[name]
            if scenario.variant:
                continue
            for ask in self.chosen.asks:
                with self._running(nodes, scenario) as programs:
                    rates = burst(programs, self.users, scenario, ask, pods)
                say(f"{name}, {pods} × {ask}: {rates.pods:.1f} pods/s")
                rows = {
                    "pods bound/s": rates.pods or None,
                    "claims allocated/s": rates.claims,
                    "names followed, %": rates.followed and 100 * rates.followed,
                    "writes a pod": sum(rates.writes.values()),
                    **{f"{program}, ms a pod": used for program, used in rates.cpu_ms.items()},
                }
                for what, value in rows.items():
                    self.figures.add(Measure(what, nodes, full, ask), name, value)
                self.writes[f"{name}, {nodes} nodes, {full:.0%} in use, {ask}"] = rates.writes

    def _single(self, nodes: int, full: float, group: Sequence[str]) -> None:
        waited: dict[tuple[str, Ask], list[float]] = defaultdict(list)
        for _ in range(self.chosen.rounds):
            for name in group:
                scenario = SCENARIOS[name]
                if scenario.variant or not scenario.scheduled:
                    continue
                with self._running(nodes, scenario) as programs:
                    for ask in self.chosen.asks:
                        waited[name, ask] += seconds_each(
                            programs,
                            self.users,
                            scenario,
                            ask,
                            self.chosen.single // self.chosen.rounds,
                        )
        for (name, ask), seconds in waited.items():
            for share in (0.5, 0.9):
                what = f"one pod until it is bound, ms, p{100 * share:.0f}"
                value = 1000 * percentile(seconds, share)
                self.figures.add(Measure(what, nodes, full, ask), name, value)
            say(f"{name}, {ask} in turn: {1000 * statistics.median(seconds):.0f} ms")

    def _waiting(self, nodes: int, full: float, group: Sequence[str]) -> None:
        chosen = self.chosen
        for name in group:
            scenario = SCENARIOS[name]
            if not scenario.scheduled:
                continue
            with self._running(nodes, scenario) as programs:
                freed = freed_cards(
                    programs,
                    self.users,
                    self.prefill,
                    scenario,
                    waiting=chosen.waiting,
                    cards=chosen.freed,
                )
            rows = {
                "until bound, ms, p50": 1000 * statistics.median(freed.seconds),
                "until bound, ms, max": 1000 * max(freed.seconds),
                **{f"{program}, ms": used for program, used in freed.cpu_ms.items()},
            }
            say(f"{name}, a freed card: {rows}")
            for what, value in rows.items():
                row = Measure(
                    f"a freed card, {chosen.waiting} wait: {what}", nodes, full, Ask.WHOLE
                )
                self.figures.add(row, name, value)

    def _hostile(self, nodes: int, full: float, group: Sequence[str]) -> None:
        for name in group:
            scenario = SCENARIOS[name]
            if not scenario.scheduled or scenario.variant:
                continue
            for attack in self.chosen.attacks:
                with self._running(nodes, scenario) as programs:
                    seconds = worst_wait(programs, self.users, scenario, ATTACKS[attack])
                say(f"{name}, neighbour of {attack}: {seconds:.2f} s")
                row = Measure(f"neighbour of {attack}, worst, ms", nodes, full, Ask.WHOLE)
                self.figures.add(row, name, 1000 * seconds)
