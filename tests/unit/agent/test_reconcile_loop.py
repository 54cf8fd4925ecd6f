"""What the agent does for the node now and then."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import HardwareError, JournalError
from dra_driver.node.checkpoint.records import ClaimStep, record
from dra_driver.node.recovery.reconciler import NodeReconciler
from tests.unit.agent.reconcile_rig import ASKED, ONE, Rig, lose
from tests.unit.node.drs_world import DrsWorld, instance
from tests.unit.node.world import CARDS, hold


def test_a_profile_that_was_learnt_is_published(world: DrsWorld, rig: Rig) -> None:
    rig.look()
    assert world.tool.changes() == ASKED
    assert rig.changes == 1
    rig.look()
    assert world.tool.changes() == ASKED
    assert rig.changes == 1
    assert rig.recorder.lines == []


def test_cards_wait_for_the_rules_that_hold_for_them(world: DrsWorld) -> None:
    """Without the Node's labels it is unknown whether a card may be divided: it is not touched,
    and the labels are asked for sooner than the next look is due."""
    rig = Rig(world, {"nodeSelector": {"use": "a"}, "modes": ["whole", "drs"]}, use="a")
    rig.api.away = True
    rig.reconcile_loop.run_once()

    def come_back() -> bool:
        rig.api.away = len(rig.waits) < 3
        assert world.tool.changes() == ([] if len(rig.waits) <= 3 else ASKED)
        return len(rig.waits) == 6

    rig.on_wait = come_back
    assert rig.run() == [1, 2, 4, 60, 60, 60]
    assert rig.changes == 2  # the labels, then the profiles
    assert rig.recorder.lines == []


def test_a_card_that_may_not_be_divided_is_not_examined(world: DrsWorld) -> None:
    rig = Rig(world, {"cards": [ONE], "modes": ["whole"]})
    rig.look()
    assert world.tool.changes() == []
    assert rig.recorder.lines == []


def test_what_is_taken_back_after_a_lost_journal_waits_for_the_card(world: DrsWorld) -> None:
    """A card of ours, in DRS mode and empty: only while the journal's loss is remembered it can
    be told from one that somebody else switched on."""
    world.tool.set_card(ONE, virtualization="DRS")
    rig = Rig(world)
    rig.lose_journal()
    lose(world)
    rig.reconcile_loop.run_once()
    assert not rig.has_complete_journal()
    lose(world, lost=False)
    rig.look()
    assert rig.cards.foreign == {}
    assert world.tool.card(ONE).virtualization == "Disable"
    assert rig.has_complete_journal()
    headers = rig.headers()
    rig.look()
    assert rig.headers() == headers


def test_what_is_lost_while_the_cards_are_looked_at_is_for_the_next_look(
    world: DrsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look itself reads the journal, and may be who finds that it is damaged."""
    world.tool.set_card(ONE, virtualization="DRS")
    rig = Rig(world)
    rig.lose_journal()
    look = NodeReconciler.run

    def damaged_meanwhile(self: NodeReconciler, *args: Any, **keys: Any) -> Any:
        findings = look(self, *args, **keys)
        rig.lose_journal()
        return findings

    with monkeypatch.context() as patch:
        patch.setattr(NodeReconciler, "run", damaged_meanwhile)
        rig.look()
    assert not rig.has_complete_journal()
    rig.look()
    assert rig.has_complete_journal()
    assert rig.cards.foreign == {}


def test_what_is_taken_back_waits_until_the_cards_are_read(rig: Rig) -> None:
    rig.cards.latest = None
    rig.lose_journal()
    rig.reconcile_loop.run_once()
    assert not rig.has_complete_journal()
    rig.look()
    assert rig.has_complete_journal()


def test_an_instance_made_anew_is_told(world: DrsWorld, rig: Rig) -> None:
    """Its claim's status names another uuid now."""
    rig.look()
    rig.prepared(instance("a", 0, 1))
    rig.look()
    assert rig.changes == 1
    world.reboot()
    rig.look()
    assert len(world.tool.instances(ONE)) == 1
    assert rig.changes == 2


def test_a_card_that_hung_a_moment_ago_is_not_waited_for(world: DrsWorld) -> None:
    """Neither what is unfinished there, nor what may be missing."""
    world.breaker = HungCardBreaker(20, clock=lambda: world.now)
    rig = Rig(world)
    rig.look()
    refs = [rig.prepared(instance(name, 0, 1)) for name in "ab"]
    world.tool.set_fault("destroy-fails", times=1)
    assert rig.agent.preparer.unprepare(refs[:1])[refs[0].uid] is not None
    journal = rig.agent.journal
    journal.write(record(ClaimStep.UNPREPARE_STARTED, ClaimRef("team", "c", "uid-c"), (hold(0),)))
    world.breaker.on_hung(CARDS[0], HardwareError("it did not end within 20 s"))
    world.tool.calls.clear()
    rig.look()
    assert world.tool.calls == []
    assert rig.agent.held() == {"uid-a": "unpreparing", "uid-b": "prepared"}, "c needs no tool"
    world.now += 20
    rig.look()
    assert rig.agent.held() == {refs[1].uid: "prepared"}


def test_a_claim_that_cannot_be_brought_to_rest_is_told(world: DrsWorld, rig: Rig) -> None:
    rig.look()
    ref = rig.prepared(instance("a", 0, 1))
    world.tool.set_fault("destroy-fails")
    failed = rig.agent.preparer.unprepare([ref])[ref.uid]
    assert failed is not None
    rig.look()
    [line] = rig.recorder.lines
    assert line.startswith(f"GcuRecoveryFailed claim with UID {ref.uid}: ")
    world.tool.clear_faults()
    rig.look()
    assert len(rig.recorder.lines) == 1
    assert world.tool.instances(ONE) == ()
    assert world.tool.card(ONE).virtualization == "Disable"


def test_a_journal_that_cannot_be_read_does_not_end_the_looks(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fail() -> None:
        raise JournalError("the disk is gone")

    monkeypatch.setattr(rig.agent.journal, "snapshot", fail)
    rig.on_wait = lambda: len(rig.waits) == 3
    assert rig.run() == [60, 60, 60]


def test_claims_of_containers_whose_records_are_lost_are_told(rig: Rig) -> None:
    """The kubelet has a claim that ends a moment longer than the journal, so the first look that
    finds it unknown says nothing."""
    rig.look()
    rig.agent.journal.write(
        record(ClaimStep.PREPARE_COMPLETED, ClaimRef("team", "b", "u"), (hold(0),))
    )
    rig.kubelet.pods = [ContainerResources("team", "p", "main", claims=frozenset("ab"))]
    rig.look()
    assert rig.recorder.lines == []
    rig.look()
    [line] = rig.recorder.lines
    assert line.startswith(
        "GcuClaimsUnknown containers use claims whose records the agent lost: team/a; a "
    )
    rig.kubelet.pods = []
    rig.look()
    rig.kubelet.pods = [ContainerResources("team", "p", "main", claims=frozenset("a"))]
    rig.look()
    assert len(rig.recorder.lines) == 1


def test_a_kubelet_that_does_not_list_its_containers_does_not_end_the_looks(
    world: DrsWorld,
    rig: Rig,
) -> None:
    rig.kubelet.away = True
    rig.look()
    assert rig.recorder.lines == []
    assert world.tool.changes() == ASKED
