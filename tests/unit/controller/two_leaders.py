"""Whatever an old leader still has in hand, and however late watches are: no card twice.

Two controllers share a server that knows resourceVersions. The worst old leader is one whose
fence never shuts: it was stopped after it had looked, and everything that it had decided is
written only after another one has taken over.
"""

from __future__ import annotations

import copy
import random

from controller.queue.event_queue import ResourceEvent
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Conflict, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import Object, results
from tests.unit.controller.allocator.build import claim, device, pool
from tests.unit.controller.world import Port, World, pod

CARDS, PODS_IN_ALL = 3, 8


class Server(Port):
    """Refuses a write over another version than the present one, and tells every change."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[ResourceEvent] = []

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        name = body["metadata"]["name"]
        live = self.live.get((resource, name))
        if live is None:
            raise NotFound("gone", status=404)
        if live["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise Conflict("changed", status=409)
        merged = live | ({"status": body["status"]} if subresource else {})
        if not subresource:
            merged |= {"metadata": body["metadata"]}
        return super().replace(resource, merged, subresource=subresource)

    def keep(self, resource: Resource, obj: Object) -> Object:
        stored = super().keep(resource, copy.deepcopy(obj))
        self.log.append(ResourceEvent(resource, Change.MODIFIED, copy.deepcopy(stored)))
        return stored

    def delete_pod(self, name: str) -> None:
        gone = self.live.pop((PODS, name))
        self.log.append(ResourceEvent(PODS, Change.DELETED, gone))


class Replica(World):
    """One of the two, whose watch tells when the test says so."""

    def __init__(self, server: Server) -> None:
        super().__init__(pool("a", [device("whole", bus) for bus in range(CARDS)]), port=server)
        self._server = server
        self._told = 0

    def has_listed(self) -> None:
        """What was told up to now stands in its first lists."""
        self._told = len(self._server.log)

    def hear(self, count: int) -> None:
        for event in self._server.log[self._told :][:count]:
            self.inbox.put(event)
            self._told += 1


def history(seed: int) -> tuple[Server, Replica, Replica]:
    """Up to where the new leader leads and the old one's writes have all arrived."""
    chance = random.Random(seed)
    server = Server()
    old, new = Replica(server), Replica(server)
    new.fence.close()
    for replica in (old, new):
        replica.has_listed()
    for number in range(PODS_IN_ALL):
        new.hide(RESOURCE_CLAIMS, claim(f"c{number}"))
        new.hide(PODS, pod(f"p{number}", f"c{number}"))
        old.hear(chance.randrange(8))
        new.hear(chance.randrange(4))
        old.hands.tied = chance.random() < 0.7
        old.settle()
        new.settle()
    for number in chance.sample(range(PODS_IN_ALL), 3):
        server.delete_pod(f"p{number}")
    if chance.random() < 0.5:
        new.hear(len(server.log))
    new.lead("2")
    new.settle()
    while old.hands.given:
        old.hands.given.pop(chance.randrange(len(old.hands.given)))()
        new.hear(chance.randrange(6))
        new.settle()
    return server, old, new


def held(server: Server) -> list[tuple[str, str]]:
    return [
        (each.pool, each.device)
        for (resource, _), found in server.live.items()
        if resource is RESOURCE_CLAIMS
        for each in results(found)
    ]


def play(seed: int) -> None:
    """One history, and what must hold at its end and once everything has been told."""
    server, _, new = history(seed)
    assert len(held(server)) == len(set(held(server)))
    new.hear(len(server.log))
    new.after(60.0)
    new.hear(len(server.log))
    new.after(60.0)
    assert len(held(server)) == len(set(held(server))) == CARDS
