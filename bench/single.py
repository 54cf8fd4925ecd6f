"""How long one pod takes until it is bound, on a control plane that has nothing else to do.

There is no kubelet: what a node adds is the same whoever allocates (bench/prepare measures it).
"""

from __future__ import annotations

import time
from contextlib import closing

from bench.programs import Programs
from bench.scenarios import Ask, Scenario
from bench.users import Seen, Users, is_bound
from dra_driver.kube.resources import PODS


def seconds_each(
    programs: Programs, users: Users, scenario: Scenario, ask: Ask, count: int
) -> list[float]:
    """For so many pods in turn, seconds from the creation of claim and pod to the binding. The
    pods stay until the last one is bound. Raises TimeoutError."""
    request = ask.request(scenario.devices)
    waited = []
    programs.wait_quiet()
    with closing(Seen(users.api, PODS, is_bound)) as bound:
        for number in range(count):
            begun = time.monotonic()
            users.start(scenario, request, f"user-{number}")
            waited.append(bound.last(number + 1) - begun)
    users.end_all()
    return waited
