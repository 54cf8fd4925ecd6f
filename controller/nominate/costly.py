"""Which pods cost kube-scheduler so much that it must not try them in vain. Pure.

kube-scheduler tries one pod at a time, one without room again and again: others would wait for it.
"""

from __future__ import annotations

from math import comb, prod
from typing import Final

from controller.allocator.claim_request import Request
from controller.placer.pod_claims import PodClaims
from dra_driver.selector.allowance import STEPS
from dra_driver.selector.selector import Selectors

_STEPS: Final = STEPS // 10
_CHOICES: Final = 10_000
_CARDS: Final = 8  # a node usually has so many


def is_costly(asked: PodClaims, selectors: Selectors) -> bool:
    """Whether the selectors of the pod's claims, each once, take many steps, or its requests can be
    served in many ways. Of these kube-scheduler tries all on each node before it gives up: for each
    device of a request all devices of the next one (1.37.2, `allocateOne`)."""
    expressions = {
        expression
        for claim in asked.together
        for request in claim.exact_requests()
        for expression in request.device_request.selectors
    }
    if sum(map(selectors.cost, expressions)) >= _STEPS:
        return True
    requests = [request for claim in asked.together for request in claim.requests]
    return prod(map(_choices, requests)) > _CHOICES


def _choices(request: Request) -> int:
    """In how many ways so many of a node's cards can be taken; of half of them there are most."""
    counts = [each.device_request.count or 1 for each in request.alternatives]
    return sum(comb(_CARDS, min(count, _CARDS // 2)) for count in counts)
