"""Whatever writes an old leader has in flight, and however late watches are: no card twice.

Two controllers share a server that knows resourceVersions. The worst old leader is one whose
fence never closes: it was suspended after the check, and everything that it had decided is
written only after the other one has taken over.
"""

from __future__ import annotations

import random

from controller.queue.event_queue import ResourceEvent
from dra_driver.kube.api import Change
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import results
from tests.fake_api.store import Entry, copied
from tests.unit.controller.allocator.build import claim, device, pool
from tests.unit.controller.fake_api import FakeApi
from tests.unit.controller.world import World, pod

CARDS, PODS_IN_ALL = 3, 8


class Server(FakeApi):
    """The server of both, and every change of it."""

    @property
    def log(self) -> list[Entry]:
        return self.store.after(self.store.oldest)

    def delete_pod(self, name: str) -> None:
        self.remove(PODS, name, "default")


class Replica(World):
    """One of the two, whose watch delivers when the test says so."""

    def __init__(self, server: Server) -> None:
        super().__init__(pool("a", [device("whole", bus) for bus in range(CARDS)]), api=server)
        self._server = server
        self._delivered = 0

    def has_listed(self) -> None:
        """All events up to now are in its first lists."""
        self._delivered = len(self._server.log)

    def receive(self, count: int) -> None:
        for each in self._server.log[self._delivered :][:count]:
            change = Change.DELETED if each.new is None else Change.MODIFIED
            seen = copied(each.new or each.old or {})
            self.events.put(ResourceEvent(each.key.resource, change, seen))
            self._delivered += 1


def history(seed: int) -> tuple[Server, Replica, Replica]:
    """Up to where the new leader leads and the old one's writes have all arrived."""
    chance = random.Random(seed)
    server = Server()
    old, new = Replica(server), Replica(server)
    new.fence.close()
    for replica in (old, new):
        replica.has_listed()
    for number in range(PODS_IN_ALL):
        new.put_unseen(RESOURCE_CLAIMS, claim(f"c{number}"))
        new.put_unseen(PODS, pod(f"p{number}", f"c{number}"))
        old.receive(chance.randrange(8))
        new.receive(chance.randrange(4))
        old.pool.is_paused = chance.random() < 0.7
        old.run_until_idle()
        new.run_until_idle()
    for number in chance.sample(range(PODS_IN_ALL), 3):
        server.delete_pod(f"p{number}")
    if chance.random() < 0.5:
        new.receive(len(server.log))
    new.lead("2")
    new.run_until_idle()
    while old.pool.submitted:
        old.pool.submitted.pop(chance.randrange(len(old.pool.submitted)))()
        new.receive(chance.randrange(6))
        new.run_until_idle()
    return server, old, new


def held(server: Server) -> list[tuple[str, str]]:
    return [
        (each.pool, each.device)
        for (resource, _), found in server.live.items()
        if resource is RESOURCE_CLAIMS
        for each in results(found)
    ]


def play(seed: int) -> None:
    """One history, and what must hold at its end and once all events were delivered."""
    server, _, new = history(seed)
    assert len(held(server)) == len(set(held(server)))
    new.receive(len(server.log))
    new.after(60.0)
    new.receive(len(server.log))
    new.after(60.0)
    assert len(held(server)) == len(set(held(server))) == CARDS
