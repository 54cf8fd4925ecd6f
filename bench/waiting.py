"""What one freed card costs while many pods wait for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from bench.prefill import Prefill
from bench.programs import Programs
from bench.scenarios import Ask, Scenario
from bench.users import Seen, Users, is_bound
from dra_driver.kube.resources import PODS


@dataclass(frozen=True, slots=True)
class Freed:
    """Seconds from the end of a claim to the binding of the pod that gets its card, for some cards
    in turn. `cpu_ms` is each program's processor time for a freed card, until all is at rest."""

    seconds: list[float]
    cpu_ms: Mapping[str, float]


def freed_cards(
    programs: Programs,
    users: Users,
    prefill: Prefill,
    scenario: Scenario,
    *,
    waiting: int,
    cards: int,
) -> Freed:
    """All cards are in use, and so many pods wait for a whole one. Nothing is left of them. Raises
    TimeoutError."""
    users.start_all(scenario, Ask.WHOLE.request(scenario.devices), waiting)
    programs.wait_quiet()
    before, waited = programs.cpu(), []
    with closing(Seen(users.api, PODS, is_bound)) as bound:
        for number in range(cards):
            begun = time.monotonic()
            prefill.free_card()
            waited.append(bound.last(number + 1) - begun)
            programs.wait_quiet()
    used = programs.cpu()
    users.end_all()
    prefill.restore()
    return Freed(waited, {name: 1000 * (used[name] - before[name]) / cards for name in used})
