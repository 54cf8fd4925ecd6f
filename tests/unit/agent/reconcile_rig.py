"""The reconcile loop of a node with simulated cards, run by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra.deleted_claims import DeletedClaimDetector
from dra_driver.agent.events import EventReporter
from dra_driver.agent.reconcile_loop import ReconcileLoop
from dra_driver.config.card_rules import CardRules
from dra_driver.kube.api import Api
from dra_driver.kubelet_api.pod_resources import ContainerResources, KubeletError
from dra_driver.model.card import Cards, Problem
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.pci import PciAddress
from dra_driver.node.recovery.reconciler import NodeReconciler
from dra_driver.util.backoff import Backoff
from tests.unit.agent.labelled_node import LabelledNode
from tests.unit.agent.recorder import ListRecorder
from tests.unit.node.drs_world import DrsWorld, errors
from tests.unit.node.world import CARDS, NODE

ONE = str(CARDS[0])
ASKED = ["0 on", "0 off"]
"""What the tool is told to learn the profiles of that card."""


class LookedAt:
    """Plays `CardCache`: what a look at the machine found last. A lost card stays as it was."""

    def __init__(self, world: DrsWorld) -> None:
        self.latest: Cards | None = {}
        self.foreign: Mapping[PciAddress, Problem] = {}
        self._world = world

    def look(self) -> None:
        found = {card.address: card for card in self._world.cards.all()}
        self.latest = {**(self.latest or {}), **found}


class Kubelet:
    """Plays `PodResources`: the plugins and pods of the node."""

    def __init__(self) -> None:
        self.plugins: dict[str, set[str]] = {}
        self.pods: list[ContainerResources] = []
        self.away = False

    def offered(self) -> Mapping[str, frozenset[str]]:
        if self.away:
            raise KubeletError("the kubelet does not answer")
        return {resource: frozenset(ids) for resource, ids in self.plugins.items()}

    def containers(self) -> tuple[ContainerResources, ...]:
        if self.away:
            raise KubeletError("the kubelet does not answer")
        return tuple(self.pods)


class Rig:
    """The reconcile loop of a node with simulated cards, in the test's own thread: `run` ends with
    the `waits`-th wait."""

    def __init__(self, world: DrsWorld, *rules: Mapping[str, Any], **labels: str) -> None:
        self.world = world
        self.agent = world.start()
        self.cards = LookedAt(world)
        self.cards.look()
        self.api = LabelledNode(**labels)
        self.kubelet = Kubelet()
        self.recorder = ListRecorder()
        self.changes = 0
        self.seconds = 0.0
        self.waits: list[float] = []
        self.on_wait: Callable[[], bool] = lambda: True
        parsed = CardRules.model_validate({"rules": rules})
        self.card_configs = CardConfigSource(
            cast("Api", self.api), NODE, parsed, on_change=self._changed
        )
        context = SimpleNamespace(
            api=world.api,
            cards=self.cards,
            card_configs=self.card_configs,
            kubelet=self.kubelet,
            preparer=self.agent.preparer,
            event_reporter=EventReporter(self.recorder, NODE),
            on_change=self._changed,
            journal=self.agent.journal,
        )
        self.reconcile_loop = ReconcileLoop(
            context=cast("AgentContext", context),
            deleted_claims=DeletedClaimDetector(
                cast("AgentContext", context),
                clock=lambda: self.seconds,
            ),
            reconciler=NodeReconciler(
                claim_manager=self.agent.preparer.claim_manager,
                journal=self.agent.journal,
                locks=self.agent.locks,
                drs=world.drs,
            ),
            profile_prober=world.profile_prober(self.agent),
            on_run=lambda: None,
            interval=60.0,
            backoff=Backoff(first=1.0, longest=60.0, draw=lambda: 0.0),
            wait=self._wait,
        )

    def prepared(self, claim: Object) -> ClaimRef:
        ref = self.world.api.add(claim)
        assert errors(self.agent, ref) == [""]
        return ref

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
        self.agent.journal.open()
        assert not self.agent.journal.is_complete

    def _changed(self) -> None:
        self.changes += 1

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.on_wait()


def lose(world: DrsWorld, *, lost: bool = True) -> None:
    world.tool.set_card(ONE, lost=lost)
