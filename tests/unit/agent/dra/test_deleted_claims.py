"""Cards that the journal holds for claims which Kubernetes has given up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra import deleted_claims
from dra_driver.agent.dra.deleted_claims import DeletedClaimDetector
from dra_driver.kube.errors import Unavailable
from dra_driver.kubelet_api.pod_resources import ContainerResources, KubeletError
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from tests.unit.agent.reconcile_rig import Kubelet
from tests.unit.node.world import CARDS, Api, claim, hold, result

MADE = claim("one", result(0))
REF = ClaimRef.of(MADE)
USED = ContainerResources(REF.namespace, "pod", "main", claims=frozenset({REF.name}))


class World:
    """A journal with one prepared claim, which is allocated. The kubelet lists no container."""

    def __init__(self) -> None:
        self.ledger = Ledger().apply(record(ClaimStep.PREPARE_COMPLETED, REF, (hold(0),)))
        self.api = Api()
        self.api.add(MADE)
        self.kubelet = Kubelet()
        self.changes = 0
        self.changed = threading.Event()
        self.now = 0.0
        context = SimpleNamespace(
            api=self.api,
            kubelet=self.kubelet,
            journal=SimpleNamespace(snapshot=lambda: self.ledger),
            on_change=self.on_change,
        )
        self.detector = DeletedClaimDetector(cast("AgentContext", context), clock=lambda: self.now)

    def on_change(self) -> None:
        self.changes += 1
        self.changed.set()

    def look(self) -> list[str]:
        self.detector.detect()
        return sorted(map(str, self.detector.cards()))


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("pods", "reads"),
    [([USED], []), ([], ["claim one"])],
    ids=["its container runs, so it costs no request", "its container is not listed yet"],
)
def test_a_claim_that_is_allocated(
    world: World, pods: list[ContainerResources], reads: list[str]
) -> None:
    world.kubelet.pods = pods
    assert world.look() == []
    assert (world.api.reads, world.changes) == (reads, 0)


def test_a_claim_of_an_ended_init_container_is_asked_about_rarely(world: World) -> None:
    """The kubelet does not list it. A prepare that it is in the way of asks at once."""
    for _ in range(600):
        world.look()
        world.now += 1.0
    assert len(world.api.reads) == 20
    _removed(world)
    assert world.detector.deleted_among({REF.uid})


def _removed(world: World) -> None:
    world.api.claims.clear()


def _made_again(world: World) -> None:
    world.api.add(claim("one", result(0), uid="uid-another"))


def _deallocated(world: World) -> None:
    world.api.add(MADE | {"status": {}})


@pytest.mark.parametrize("end", [_removed, _made_again, _deallocated])
def test_a_claim_that_was_given_up(world: World, end: Callable[[World], None]) -> None:
    """A named claim is deallocated as one of a template is deleted."""
    end(world)
    assert world.look() == [str(CARDS[0])]
    assert world.look() == [str(CARDS[0])]
    assert world.changes == 1


def test_the_card_is_free_once_the_kubelet_has_unprepared_the_claim(world: World) -> None:
    """At once: the next publication reads the journal."""
    _removed(world)
    world.look()
    world.ledger = Ledger()
    assert world.detector.cards() == frozenset()
    assert world.look() == []


def _without_api_server(world: World) -> None:
    world.api.errors = [Unavailable("away")]


def _without_kubelet(world: World) -> None:
    world.kubelet.away = True


@pytest.mark.parametrize("part", [_without_api_server, _without_kubelet])
def test_what_is_unknown_stays_as_it_was(world: World, part: Callable[[World], None]) -> None:
    _removed(world)
    world.look()
    part(world)
    with pytest.raises((Unavailable, KubeletError)):
        world.detector.detect()
    assert world.detector.cards() == {CARDS[0]}
    assert world.changes == 1


def test_a_claim_that_was_found_deleted_stays_so(world: World) -> None:
    """By who asked at once, before the next look was due."""
    world.look()
    _removed(world)
    assert world.detector.deleted_among({REF.uid})
    world.now += 5.0
    assert world.look() == [str(CARDS[0])]
    assert world.changes == 1


def test_one_claim_that_cannot_be_read_hides_no_other(world: World) -> None:
    """As one that etcd holds damaged."""
    other = claim("two", result(1))
    ref = ClaimRef.of(other)
    world.ledger = world.ledger.apply(record(ClaimStep.PREPARE_COMPLETED, ref, (hold(1),)))
    world.api.add(other)
    damaged = Unavailable("cannot be decoded", status=500)
    world.api.errors = [damaged]  # of the first one
    assert world.look() == []
    del world.api.claims["team", "two"]
    world.now += 30.0
    world.api.errors = [damaged]
    assert world.look() == [str(CARDS[1])]


def test_a_node_without_claims_asks_nobody(world: World) -> None:
    world.ledger = Ledger()
    world.kubelet.away = True
    assert world.look() == []


def test_it_looks_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_claims, "_INTERVAL", 0.01)
    _removed(world)
    world.detector.start()
    assert world.changed.wait(30)
    world.detector.stop(10)
    assert not world.detector.is_alive()


def test_it_is_asked_about_holders(world: World) -> None:
    assert not world.detector.deleted_among({REF.uid})
    _removed(world)
    assert world.detector.deleted_among({REF.uid, "uid-of-another"}) == {REF.uid}
    world.api.errors = [Unavailable("away")]
    assert not world.detector.deleted_among({REF.uid})
