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
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.resources import Resource
from dra_driver.kubelet_api.pod_resources import ContainerResources, KubeletError
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from tests.unit.node.world import CARDS, claim, hold, result

MADE = claim("one", result(0))
REF = ClaimRef.of(MADE)


class World:
    """A journal with one prepared claim; its pod runs, and its claim is allocated."""

    def __init__(self) -> None:
        self.ledger = Ledger().apply(record(ClaimStep.PREPARE_COMPLETED, REF, (hold(0),)))
        self.claims: dict[str, Object] = {"one": MADE}
        self.used = frozenset({"one"})
        self.asked = 0
        self.changes = 0
        self.changed = threading.Event()
        self.error: GcuError | None = None
        self.unreadable = ""
        self.kubelet_error: KubeletError | None = None
        self.now = 0.0
        context = SimpleNamespace(
            api=self,
            kubelet=self,
            journal=SimpleNamespace(snapshot=lambda: self.ledger),
            on_change=self.on_change,
        )
        self.detector = DeletedClaimDetector(cast("AgentContext", context), clock=lambda: self.now)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self.asked += 1
        if self.error:
            raise self.error
        if name == self.unreadable:
            raise Unavailable("cannot be decoded", status=500)
        if name not in self.claims:
            raise NotFound(f"no {name}", status=404)
        return self.claims[name]

    def containers(self) -> tuple[ContainerResources, ...]:
        if self.kubelet_error:
            raise self.kubelet_error
        return (ContainerResources(REF.namespace, "pod", "main", {}, self.used),)

    def on_change(self) -> None:
        self.changes += 1
        self.changed.set()

    def look(self) -> list[str]:
        self.detector.detect()
        return sorted(map(str, self.detector.cards()))


@pytest.fixture
def world() -> World:
    return World()


def test_a_claim_whose_container_runs_costs_no_request(world: World) -> None:
    assert world.look() == []
    assert (world.asked, world.changes) == (0, 0)


def test_a_claim_before_its_container_is_listed(world: World) -> None:
    world.used = frozenset()
    assert world.look() == []
    assert (world.asked, world.changes) == (1, 0)


def test_a_claim_of_an_ended_init_container_is_asked_about_rarely(world: World) -> None:
    """The kubelet does not list it. A prepare that it is in the way of asks at once."""
    world.used = frozenset()
    for _ in range(600):
        world.look()
        world.now += 1.0
    assert world.asked == 20
    _removed(world)
    assert world.detector.deleted_among({REF.uid})


def _removed(world: World) -> None:
    del world.claims["one"]


def _made_again(world: World) -> None:
    world.claims["one"] = claim("one", result(0), uid="uid-another")


def _deallocated(world: World) -> None:
    world.claims["one"] = MADE | {"status": {}}


@pytest.mark.parametrize("end", [_removed, _made_again, _deallocated])
def test_a_claim_that_was_given_up(world: World, end: Callable[[World], None]) -> None:
    """A named claim is deallocated as one of a template is deleted."""
    world.used = frozenset()
    end(world)
    assert world.look() == [str(CARDS[0])]
    assert world.look() == [str(CARDS[0])]
    assert world.changes == 1


def test_the_card_is_free_once_the_kubelet_has_unprepared_the_claim(world: World) -> None:
    """At once: the next publication reads the journal."""
    world.used = frozenset()
    _removed(world)
    world.look()
    world.ledger = Ledger()
    assert world.detector.cards() == frozenset()
    assert world.look() == []


@pytest.mark.parametrize("part", ["error", "kubelet_error"])
def test_what_is_unknown_stays_as_it_was(world: World, part: str) -> None:
    world.used = frozenset()
    _removed(world)
    world.look()
    error = Unavailable("away") if part == "error" else KubeletError("away")
    setattr(world, part, error)
    with pytest.raises(type(error)):
        world.detector.detect()
    assert world.detector.cards() == {CARDS[0]}
    assert world.changes == 1


def test_a_claim_that_was_found_deleted_stays_so(world: World) -> None:
    """By who asked at once, before the next look was due."""
    world.used = frozenset()
    world.look()
    _removed(world)
    assert world.detector.deleted_among({REF.uid})
    world.now += 5.0
    assert world.look() == [str(CARDS[0])]
    assert world.changes == 1


def test_one_claim_that_cannot_be_read_hides_no_other(world: World) -> None:
    """As one that etcd holds damaged."""
    world.used = frozenset()
    other = claim("two", result(1))
    ref = ClaimRef.of(other)
    world.ledger = world.ledger.apply(record(ClaimStep.PREPARE_COMPLETED, ref, (hold(1),)))
    world.claims["two"] = other
    world.unreadable = "one"
    assert world.look() == []
    del world.claims["two"]
    world.now += 30.0
    assert world.look() == [str(CARDS[1])]


def test_a_node_without_claims_asks_nobody(world: World) -> None:
    world.ledger = Ledger()
    world.kubelet_error = KubeletError("not asked")
    assert world.look() == []


def test_it_looks_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_claims, "_INTERVAL", 0.01)
    world.used = frozenset()
    _removed(world)
    world.detector.start()
    assert world.changed.wait(30)
    world.detector.stop(10)
    assert not world.detector.is_alive()


def test_it_is_asked_about_holders(world: World) -> None:
    assert not world.detector.deleted_among({REF.uid})
    world.used = frozenset()
    _removed(world)
    assert world.detector.deleted_among({REF.uid, "uid-of-another"}) == {REF.uid}
    world.error = Unavailable("away")
    assert not world.detector.deleted_among({REF.uid})
