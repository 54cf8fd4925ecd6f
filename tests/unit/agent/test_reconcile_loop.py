"""What the agent does for the node now and then, and what people are told of it once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.cards.foreign_plugin import ForeignPluginDetector
from dra_driver.agent.events import EventReporter
from dra_driver.agent.lifecycle.serving_mode import ServingDecision, ServingMode, ServingState
from dra_driver.agent.reconcile_loop import ReconcileLoop
from dra_driver.config.card_rules import CardRules
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.kube.api import Api
from dra_driver.model.card import Card, Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import HardwareError, JournalError
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.records import Kind, record
from dra_driver.node.recovery.reconciler import Reconciler
from dra_driver.simulator.state import Instance
from dra_driver.util.backoff import Backoff
from tests.unit.agent.labelled_node import LabelledNode
from tests.unit.agent.recorder import ListRecorder
from tests.unit.node.drs_world import DrsWorld, errors, instance, tool, whole
from tests.unit.node.world import CARDS, NODE, hold

ONE = str(CARDS[0])
ASKED = ["0 on", "0 off"]
THEIRS = Instance(9, "1g.6gb", "theirs", (0,))
FOREIGN = (
    f"GcuCardForeign card {ONE}: somebody made DRS instances: 1g.6gb theirs; if no program uses "
    "it, free it: `efsmi -i 0 -L` has the ids, `efsmi -i 0 --drs --destroy-instance ID` for each, "
    "then `efsmi -i 0 --drs off`"
)
WITHOUT = f"GcuCardWithoutDrs card {ONE} is not offered in DRS mode: "


class LookedAt:
    """Plays `CardCache`: what a look at the machine found last. A lost card stays as it was."""

    def __init__(self, world: DrsWorld) -> None:
        self.latest: tuple[Card, ...] | None = ()
        self.foreign: Mapping[PciAddress, Problem] = {}
        self._world = world

    def look(self) -> None:
        found = {card.address: card for card in self._world.cards.all()}
        self.latest = tuple(({card.address: card for card in self.latest or ()} | found).values())


DRA = ServingDecision(ServingMode.DRA, "mode is set to dra", has_dra=True)


class Rig:
    """The reconcile loop of a node with simulated cards, in the test's own thread: `run` ends with
    the `waits`-th wait."""

    def __init__(self, world: DrsWorld, *rules: Mapping[str, Any], **labels: str) -> None:
        self.world = world
        self.agent = world.start()
        self.cards = LookedAt(world)
        self.cards.look()
        self.api = LabelledNode(**labels)
        self.node = LabelledNode()
        self.now = 0.0
        self.recorder = ListRecorder()
        self.changes = 0
        self.waits: list[float] = []
        self.on_wait: Callable[[], bool] = lambda: True
        parsed = CardRules.model_validate({"rules": rules})
        self.card_configs = CardConfigSource(
            cast("Api", self.api), NODE, parsed, on_change=self._changed
        )
        self.reconcile_loop = ReconcileLoop(
            cards=cast("CardCache", self.cards),
            card_configs=self.card_configs,
            foreign_plugins=ForeignPluginDetector(
                cast("Api", self.node),
                NODE,
                serving=ServingState(DRA),
                clock=lambda: self.now,
            ),
            reconciler=Reconciler(
                claim_manager=self.agent.preparer.claim_manager,
                journal=self.agent.journal,
                locks=self.agent.locks,
                drs=world.drs,
            ),
            profile_prober=world.profile_prober(self.agent),
            event_reporter=EventReporter(self.recorder, NODE),
            on_change=self._changed,
            journal=self.agent.journal,
            interval=60.0,
            backoff=Backoff(first=1.0, longest=60.0, draw=lambda: 0.0),
            wait=self._wait,
        )

    def look(self) -> None:
        """One run, just after an inventory of the machine."""
        self.cards.look()
        self.reconcile_loop.run_once()

    def run(self) -> list[float]:
        self.reconcile_loop.run()
        return self.waits

    @property
    def journal_file(self) -> Path:
        return self.world.root / "state" / "journal"

    def headers(self) -> int:
        """How often the journal's header was written. The last header says what is lost."""
        return self.journal_file.read_bytes().count(b'"kind":"header"')

    def has_complete_journal(self) -> bool:
        return self.agent.journal.is_complete

    def lose_journal(self) -> None:
        self.journal_file.unlink()
        assert not self.agent.journal.open().complete

    def _changed(self) -> None:
        self.changes += 1

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.on_wait()


@pytest.fixture
def world(tmp_path: Path) -> DrsWorld:
    return DrsWorld(tmp_path, tool=tool(1))


def lose(world: DrsWorld, *, lost: bool = True) -> None:
    world.tool.set_card(ONE, lost=lost)


def divide(world: DrsWorld, *instances: Instance) -> None:
    """Somebody makes instances, or destroys all and switches DRS mode off."""
    mode = "DRS" if instances else "Disable"
    world.tool.set_card(ONE, instances=instances, virtualization=mode)


def test_a_profile_that_was_learnt_is_published(world: DrsWorld) -> None:
    rig = Rig(world)
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


def test_foreign_instances_are_told_once_until_they_are_gone(world: DrsWorld) -> None:
    rig = Rig(world)
    rig.look()
    divide(world, THEIRS)
    for _ in range(3):
        rig.look()
        assert list(rig.cards.foreign) == [CARDS[0]]
    lose(world)
    rig.look()
    assert list(rig.cards.foreign) == [CARDS[0]]
    lose(world, lost=False)
    rig.look()
    assert rig.recorder.lines == [FOREIGN]
    divide(world)
    rig.look()
    assert rig.cards.foreign == {}
    divide(world, THEIRS)
    rig.look()
    assert rig.recorder.lines == [FOREIGN, FOREIGN]
    assert world.tool.changes() == ASKED


def test_another_foreign_instance_is_told(world: DrsWorld) -> None:
    rig = Rig(world)
    rig.look()
    divide(world, THEIRS)
    rig.look()
    divide(world, THEIRS, Instance(8, "1g.6gb", "theirs-too", (1,)))
    rig.look()
    assert len(rig.recorder.lines) == 2


def test_why_a_card_has_no_drs_is_told_once(world: DrsWorld) -> None:
    rig = Rig(world)
    world.tool.set_fault("drs-on-refused")
    for minute in range(5):
        world.now = 60.0 * minute
        rig.look()
    [line] = rig.recorder.lines
    assert line.startswith(f"{WITHOUT}card {ONE} cannot be switched to DRS mode")
    world.tool.clear_faults()
    world.now = 3600.0
    rig.look()
    assert len(rig.recorder.lines) == 1
    assert rig.changes == 1


def test_each_reason_is_told(world: DrsWorld) -> None:
    rig = Rig(world)
    held = world.api.add(whole("a", 0))
    assert errors(rig.agent, held) == [""]
    rig.look()
    rig.look()
    rig.agent.preparer.unprepare([held])
    world.tool.set_fault("drs-on-refused")
    rig.look()
    unknown, refused = (line.removeprefix(WITHOUT) for line in rig.recorder.lines)
    assert unknown.endswith("unknown until such a card is free")
    assert refused.startswith(f"card {ONE} cannot be switched to DRS mode")


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
    look = Reconciler.run

    def damaged_meanwhile(self: Reconciler, *args: Any, **keys: Any) -> Any:
        findings = look(self, *args, **keys)
        rig.lose_journal()
        return findings

    with monkeypatch.context() as patch:
        patch.setattr(Reconciler, "run", damaged_meanwhile)
        rig.look()
    assert not rig.has_complete_journal()
    rig.look()
    assert rig.has_complete_journal()
    assert rig.cards.foreign == {}


def test_what_is_taken_back_waits_until_the_cards_are_read(world: DrsWorld) -> None:
    rig = Rig(world)
    rig.cards.latest = None
    rig.lose_journal()
    rig.reconcile_loop.run_once()
    assert not rig.has_complete_journal()
    rig.look()
    assert rig.has_complete_journal()


def test_an_instance_made_anew_is_told(world: DrsWorld) -> None:
    """Its claim's status names another uuid now."""
    rig = Rig(world)
    rig.look()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(rig.agent, ref) == [""]
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
    refs = [world.api.add(instance(name, 0, 1)) for name in "ab"]
    assert errors(rig.agent, *refs) == ["", ""]
    world.tool.set_fault("destroy-fails", times=1)
    assert rig.agent.preparer.unprepare(refs[:1])[refs[0].uid] is not None
    journal = rig.agent.journal
    journal.write(record(Kind.UNPREPARE_STARTED, ClaimRef("team", "c", "uid-c"), (hold(0),)))
    world.breaker.on_hung(CARDS[0], HardwareError("it did not end within 20 s"))
    world.tool.calls.clear()
    rig.look()
    assert world.tool.calls == []
    assert rig.agent.held() == {"uid-a": "unpreparing", "uid-b": "prepared"}, "c needs no tool"
    world.now += 20
    rig.look()
    assert rig.agent.held() == {refs[1].uid: "prepared"}


def test_a_claim_that_cannot_be_brought_to_rest_is_told(world: DrsWorld) -> None:
    rig = Rig(world)
    rig.look()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(rig.agent, ref) == [""]
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
    world: DrsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(world)

    def fail() -> None:
        raise JournalError("the disk is gone")

    monkeypatch.setattr(rig.agent.journal, "snapshot", fail)
    rig.on_wait = lambda: len(rig.waits) == 3
    assert rig.run() == [60, 60, 60]


def test_cards_that_a_device_plugin_gives_out_are_tainted_while_it_does(world: DrsWorld) -> None:
    rig = Rig(world)
    rig.node.allocatable = {"enflame.com/gcu": "1", "cpu": "4"}
    rig.look()
    text = (
        "a device plugin gives the cards of this node to pods as enflame.com/gcu; remove it, "
        "or keep this driver off the node"
    )
    assert rig.cards.foreign == {CARDS[0]: Problem(TAINT_FOREIGN, "", text)}
    rig.look()
    assert [line for line in rig.recorder.lines if "plugin" in line] == [f"GcuCardForeign {text}"]
    rig.node.away = True
    rig.look()
    assert set(rig.cards.foreign) == {CARDS[0]}
    rig.node.away, rig.node.allocatable = False, {"enflame.com/gcu": "0"}
    rig.look()
    assert rig.cards.foreign == {}


def test_what_somebody_made_on_a_card_is_the_better_reason(world: DrsWorld) -> None:
    rig = Rig(world)
    rig.node.allocatable = {"enflame.com/drs-gcu": "6"}
    world.tool.set_card(ONE, virtualization="DRS", instances=(THEIRS,))
    rig.look()
    assert "somebody made DRS instances" in rig.cards.foreign[CARDS[0]].text
