"""How long a real control plane takes for pods that all come at once, each with a claim.

Pods and claims are made while kube-scheduler and the controller are stopped; the time runs from
when they go on to the last binding and the last allocation, as a watch reports them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from bench.programs import Programs
from bench.scenarios import Ask, Scenario
from bench.users import Seen, Users, is_allocated, is_bound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS


@dataclass(frozen=True, slots=True)
class Rates:
    """In a second; no pod is bound while kube-scheduler is stopped. `cpu_ms` is the processor time
    that each program took for a pod, `writes` what was sent to the API server for a pod, and
    `followed` the share of pods that were bound to the node that the controller named, None if it
    named none."""

    claims: float
    pods: float
    cpu_ms: Mapping[str, float]
    writes: Mapping[str, float]
    followed: float | None = None


def burst(programs: Programs, users: Users, scenario: Scenario, ask: Ask, count: int) -> Rates:
    """So many pods at once. Nothing is left of them. Raises TimeoutError."""
    programs.stop()
    try:
        users.start_all(scenario, ask.request(scenario.devices), count)
        with (
            closing(Seen(users.api, PODS, is_bound)) as bound,
            closing(Seen(users.api, RESOURCE_CLAIMS, is_allocated)) as allocated,
        ):
            written, before, begun = programs.writes(), programs.cpu(), time.monotonic()
            programs.go_on(scheduler=scenario.scheduled)
            claims = count / (allocated.last(count) - begun)
            pods = count / (bound.last(count) - begun) if scenario.scheduled else 0.0
            after = programs.cpu()
            programs.wait_quiet()  # events come late
            sent = Counter(programs.writes())
            followed = programs.followed()
    finally:
        programs.go_on()
    sent.subtract(written)
    users.end_all()
    return Rates(
        claims,
        pods,
        {name: 1000 * (used - before[name]) / count for name, used in after.items()},
        {what: number / count for what, number in sent.most_common() if number > 0},
        followed,
    )
