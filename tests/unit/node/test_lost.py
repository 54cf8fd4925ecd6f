"""Claims of which the node has lost all records, and whose instances are still there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.kube.errors import Unavailable
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.node.failures import TRIES
from dra_driver.node.status import device_statuses
from tests.unit.node.drs_world import DrsWorld, errors, instance, tool
from tests.unit.node.world import CARDS, Agent

ONE = str(CARDS[0])


class Loss(DrsWorld):
    """Claims that were prepared, and told of it in their status, before all records were lost."""

    def told(self, agent: Agent, claim: Object) -> ClaimRef:
        ref = self.api.add(claim)
        assert errors(agent, ref) == [""]
        holds = agent.journal.snapshot().holdings[ref.uid].holds
        cards = {card.address: card for card in self.cards.all()}
        claim["status"]["devices"] = device_statuses(holds, cards, now="2026-01-01T00:00:00Z")
        return ref

    def lose_all(self) -> Agent:
        """Journal and CDI files; the next agent finds foreign instances."""
        shutil.rmtree(self.root / "state")
        shutil.rmtree(self.root / "cdi")
        agent = self.start()
        assert agent.held() == {}
        self.suspects = bool(self.reconcile(agent, adopt=True).foreign)
        return agent


@pytest.fixture
def world(tmp_path: Path) -> Loss:
    return Loss(tmp_path, tool=tool())


def test_the_kubelet_ends_a_lost_claim(world: Loss) -> None:
    ref = world.told(world.start(), instance("a", 0, 1))
    agent = world.lose_all()
    assert world.suspects
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    assert (world.tool.instances(ONE), world.tool.card(ONE).virtualization) == ((), "Disable")
    assert agent.held() == {}
    assert world.reconcile(agent).foreign == {}


def test_the_kubelet_prepares_a_lost_claim_again(world: Loss) -> None:
    """As after its own restart: the running pod keeps its instance."""
    ref = world.told(world.start(), instance("a", 0, 1))
    there = world.tool.instances(ONE)
    files = world.files()
    agent = world.lose_all()
    assert errors(agent, ref) == [""]
    assert world.tool.instances(ONE) == there
    assert world.files() == files
    assert agent.held() == {ref.uid: "prepared"}
    assert world.reconcile(agent).foreign == {}


def test_of_two_lost_claims_each_gets_its_own(world: Loss) -> None:
    first = world.start()
    refs = [world.told(first, instance(name, 0, 1)) for name in "ab"]
    agent = world.lose_all()
    assert agent.preparer.unprepare([refs[0]]) == {refs[0].uid: None}
    [left] = world.tool.instances(ONE)
    assert set(world.reconcile(agent).foreign) == {CARDS[0]}
    assert errors(agent, refs[1]) == [""]
    assert world.tool.instances(ONE) == (left,)
    assert world.reconcile(agent).foreign == {}


def test_a_card_that_cannot_be_asked_for_it_closes(world: Loss) -> None:
    """The pod waits for it as for any step of a prepare."""
    ref = world.told(world.start(), instance("a", 0, 1))
    agent = world.lose_all()
    world.tool.set_fault("card-hangs", card=ONE)
    for _ in range(TRIES):
        assert world.failures.closed() == frozenset()
        assert errors(agent, ref) != [""]
    assert world.failures.closed() == {"drs-0000-0d-00-0"}
    world.tool.clear_faults()
    assert errors(agent, ref) == [""]
    assert agent.held() == {ref.uid: "prepared"}
    assert (world.failures.closed(), dict(world.failures.waiting())) == (frozenset(), {})


def test_a_call_that_was_given_up_takes_no_lost_claim_in(world: Loss) -> None:
    ref = world.told(world.start(), instance("a", 0, 1))
    agent = world.lose_all()
    answers = agent.preparer.prepare([ref], awaited=lambda: False)
    assert "given up" in str(answers[ref.uid])
    assert agent.held() == {}
    assert len(world.tool.instances(ONE)) == 1


def another_uuid(claim: Object) -> None:
    claim["status"]["devices"][0]["data"]["instanceUUID"] = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"


def no_uuid(claim: Object) -> None:
    del claim["status"]["devices"][0]["data"]["instanceUUID"]


def odd_uuid(claim: Object) -> None:
    claim["status"]["devices"][0]["data"]["instanceUUID"] = "../../etc"


def odd_data(claim: Object) -> None:
    claim["status"]["devices"][0]["data"] = ["what", "is", "this"]


def untold(claim: Object) -> None:
    del claim["status"]["devices"]


def another_driver(claim: Object) -> None:
    claim["status"]["devices"][0]["driver"] = "nic.example.com"


def another_share(claim: Object) -> None:
    claim["status"]["devices"][0]["shareID"] = "other"


def released(claim: Object) -> None:
    del claim["status"]["allocation"]


def made_anew(claim: Object) -> None:
    claim["metadata"]["uid"] = "uid-later"


@pytest.mark.parametrize(
    "change",
    [
        another_uuid,
        no_uuid,
        odd_uuid,
        odd_data,
        untold,
        another_driver,
        another_share,
        released,
        made_anew,
    ],
    ids=lambda change: change.__name__,
)
def test_what_is_not_proved_is_not_touched(world: Loss, change: Callable[[Object], None]) -> None:
    claim = instance("a", 0, 1)
    ref = world.told(world.start(), claim)
    there = world.tool.instances(ONE)
    change(claim)
    agent = world.lose_all()
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}, "no pod waits for a person"
    assert world.tool.instances(ONE) == there
    assert set(world.reconcile(agent).foreign) == {CARDS[0]}


def test_without_the_api_server_the_pod_ends_and_the_instance_stays(world: Loss) -> None:
    ref = world.told(world.start(), instance("a", 0, 1))
    agent = world.lose_all()

    def away(namespace: str, name: str) -> Object:
        raise Unavailable("the API server did not answer")

    world.api.get_claim = away  # type: ignore[method-assign]
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    assert len(world.tool.instances(ONE)) == 1


def test_another_claims_instance_is_not_claimed(world: Loss) -> None:
    """Whatever its status says."""
    agent = world.start()
    claim = instance("a", 0, 1)
    ref = world.told(agent, claim)
    thief = instance("b", 0, 1)
    thief["status"]["devices"] = [{**claim["status"]["devices"][0], "shareID": "share-b"}]
    world.suspects = True
    assert agent.preparer.unprepare([world.api.add(thief)]) == {"uid-b": None}
    assert len(world.tool.instances(ONE)) == 1
    assert agent.held() == {ref.uid: "prepared"}


def test_where_nothing_is_lost_nobody_is_asked(world: Loss) -> None:
    agent = world.start()
    ref = world.told(agent, instance("a", 0, 1))
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    asked = len(world.api.reads)
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    assert len(world.api.reads) == asked
