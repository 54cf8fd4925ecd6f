"""How long a pod waits beside another tenant's claims that are costly to decide about."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import replace

from bench.programs import Programs
from bench.published import claim_of, for_all
from bench.scenarios import Ask, Scenario
from bench.users import Seen, Users, is_bound
from dra_driver.kube.errors import AlreadyExists, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.attacks import Attack

_NAMESPACE = "attacker"
_NEIGHBOURS = 3
SECONDS = 60.0
"""After so long a neighbour is given up."""


def worst_wait(programs: Programs, users: Users, scenario: Scenario, attack: Attack) -> float:
    """The most seconds that one of three neighbours, who come in turn, waits until it is bound;
    `SECONDS` if one was given up. The attack is older, and under way when the programs go on.
    Nothing is left of all of them."""
    attacker = replace(users, namespace=_NAMESPACE)
    programs.stop()
    try:
        _attack(attacker, scenario, attack)
    finally:
        programs.go_on()
    request = Ask.WHOLE.request(scenario.devices)
    worst = 0.0
    with closing(Seen(users.api, PODS, is_bound)) as bound:
        for number in range(_NEIGHBOURS):
            begun = time.monotonic()
            users.start(scenario, request, f"neighbour-{number}")
            try:
                worst = max(worst, bound.last(number + 1, SECONDS) - begun)
            except TimeoutError:
                worst = SECONDS
                break
    attacker.end_all()
    users.end_all()
    return worst


def _attack(attacker: Users, scenario: Scenario, attack: Attack) -> None:
    namespace = attacker.namespace

    def make_claim(number: int) -> None:
        """The server compiles its selectors, which may take longer than the client waits."""
        made = claim_of(f"claim-{number}", namespace, attack.requests(number))
        with suppress(AlreadyExists):
            wait_until(
                lambda: attacker.api.create(RESOURCE_CLAIMS, made),
                PATIENCE,
                f"claim {number} of the attacker",
                retry_on=(Unavailable,),
            )

    def make_pod(number: int) -> None:
        made = scenario.pod(f"pod-{number}", namespace, f"claim-{number % attack.claims}")
        attacker.api.create(PODS, made)

    for_all(make_claim, range(attack.claims))
    for_all(make_pod, range(attack.pods))
