"""Whatever an old leader still has in hand, and however late watches are: no card twice."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.two_leaders import CARDS, PODS_IN_ALL, Replica, Server, play
from tests.unit.controller.world import LIMIT, pod


@pytest.mark.parametrize("seed", range(1_000_000, 1_000_010))
def test_no_card_is_given_twice_and_none_stays_idle(seed: int) -> None:
    """tests/property plays hundreds."""
    play(seed)


def test_the_histories_have_writes_in_hand() -> None:
    """So that the test above cannot pass by never being in danger."""
    server = Server()
    old = Replica(server)
    old.hands.tied = True
    for number in range(PODS_IN_ALL):
        old.hide(RESOURCE_CLAIMS, claim(f"c{number}"))
        old.hide(PODS, pod(f"p{number}", f"c{number}"))
    old.hear(len(server.log))
    old.settle()
    assert len(old.hands.given) == min(CARDS, LIMIT)
