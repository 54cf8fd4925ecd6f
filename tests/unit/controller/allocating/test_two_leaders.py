"""Whatever an old leader still has in hand, and however late watches are: no card twice."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.unit.controller.allocating.two_leaders import CARDS, PODS_IN_ALL, Replica, Server, play
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.world import LIMIT, pod


@pytest.mark.parametrize("seed", range(1_000_000, 1_000_010))
def test_no_card_is_given_twice_and_none_stays_idle(seed: int) -> None:
    """tests/property plays hundreds."""
    play(seed)


def test_the_histories_have_writes_in_hand() -> None:
    """So that the test above cannot pass by never being in danger."""
    server = Server()
    old = Replica(server)
    old.pool.is_paused = True
    for number in range(PODS_IN_ALL):
        old.put_unseen(RESOURCE_CLAIMS, claim(f"c{number}"))
        old.put_unseen(PODS, pod(f"p{number}", f"c{number}"))
    old.receive(len(server.log))
    old.run_until_idle()
    assert len(old.pool.submitted) == min(CARDS, LIMIT)
