"""Reconciles the node at an interval: unfinished claims, foreign instances, unknown profiles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import InitVar, dataclass

from dra_driver.agent.cards.foreign_plugin import foreign_plugin
from dra_driver.agent.context import AgentContext
from dra_driver.agent.dra.deleted_claims import DeletedClaimDetector
from dra_driver.agent.events import CARD_FOREIGN, CARD_WITHOUT_DRS
from dra_driver.kube.errors import KubeError
from dra_driver.kubelet_api.pod_resources import ContainerResources, KubeletError
from dra_driver.model.card import Card, Cards, Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.recovery.profile_prober import ProfileProber
from dra_driver.node.recovery.reconciler import Findings, NodeReconciler
from dra_driver.telemetry.logs import new_call
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class ReconcileLoop(Background):
    """Runs every `interval` seconds in its own thread, and sooner while the configuration of the
    cards is unknown. `on_run` is called at the end of each run; it may take long."""

    context: AgentContext
    deleted_claims: DeletedClaimDetector
    reconciler: NodeReconciler
    profile_prober: ProfileProber
    on_run: Callable[[], None]
    interval: float
    backoff: InitVar[Backoff | None] = None
    wait: InitVar[Wait | None] = None

    def __post_init__(self, backoff: Backoff | None, wait: Wait | None) -> None:
        super().__init__("reconcile", wait=wait)
        self._backoff = backoff or Backoff(first=1.0, longest=self.interval)
        self._without_drs: dict[PciAddress, str] = {}
        self._foreign: Mapping[PciAddress, Problem] = {}
        self._foreign_plugin: Problem | None = None
        self.foreign_pods = 0  # that have devices of another device plugin
        self._unknown: AbstractSet[str] = frozenset()

    def run(self) -> None:
        while not self._wait(self._pause()):
            try:
                self.run_once()
            except GcuError as error:
                logger.warning("the node could not be reconciled: %s", error)

    def run_once(self) -> None:
        """Reconcile once. Raises JournalError or CdiError."""
        with new_call("reconcile"):
            self._refresh()
            containers = self.detect_foreign_plugins()
            cards = self.context.cards.latest or {}
            losses, adopt = self.context.journal.losses, not self.context.journal.is_complete
            findings = self.reconciler.run(cards.values(), adopt=adopt)
            # An instance to adopt may be on a card that could not be read.
            if adopt and cards and not findings.unknown:
                self.context.journal.mark_rebuilt(losses)
            self._apply(findings, cards)
            if containers is not None:
                self._report_unknown_claims(containers)
            self._free_forgotten_claims()
            if self.context.card_configs.known:
                self._probe_profiles(cards.values())
            self.on_run()

    def _probe_profiles(self, cards: Iterable[Card]) -> None:
        config_of = self.context.card_configs.of
        with_drs = [card for card in cards if Mode.DRS in config_of(card.address).modes]
        if self.profile_prober.run(with_drs):
            self.context.on_change()
        for card in with_drs:
            self._report_drs(card)

    def _refresh(self) -> None:
        try:
            self.context.card_configs.refresh()
        except KubeError as error:
            logger.warning("the labels of this Node cannot be read: %s", error)

    def detect_foreign_plugins(self) -> Sequence[ContainerResources] | None:
        """Check whether another program gives the cards to pods; a part of each run. Returns the
        node's containers, None if the kubelet does not answer."""
        try:
            offered, containers = self.context.kubelet.offered(), self.context.kubelet.containers()
        except KubeletError as error:
            logger.warning(
                "whether another device plugin gives the cards to pods, and which claims the "
                "node's containers use, is unknown: %s",
                error,
            )
            return None
        problem, self.foreign_pods = foreign_plugin(offered, containers)
        if problem is not None and problem != self._foreign_plugin:
            self.context.event_reporter.warning(CARD_FOREIGN, problem.text)
        self._foreign_plugin = problem
        self._mark_foreign()
        return containers

    def _report_unknown_claims(self, containers: Iterable[ContainerResources]) -> None:
        """Claims of `containers` whose records were lost, and the CDI files with them. The
        containers were listed before: a claim is in the journal before the kubelet has it. One that
        ends is forgotten by the kubelet a moment after the journal, so it is unknown twice."""
        used = {f"{each.namespace}/{claim}" for each in containers for claim in each.claims}
        owners = [held.owner for held in self.context.journal.snapshot().claims.values()]
        known = {f"{each.namespace}/{each.name}" for each in owners if isinstance(each, ClaimRef)}
        before, self._unknown = self._unknown, used - known
        if unknown := sorted(self._unknown & before):
            self.context.event_reporter.claims_unknown(unknown)

    def _free_forgotten_claims(self) -> None:
        for claim in self.deleted_claims.forgotten():
            try:
                self.context.preparer.claim_manager.unprepare(claim)
            except GcuError as error:
                logger.warning("claim %s, which is forgotten, stays prepared: %s", claim, error)
            else:
                self.context.event_reporter.claim_forgotten(claim)
                self.context.on_change()

    def _mark_foreign(self) -> None:
        """A foreign instance on a card is a better reason than a foreign device plugin."""
        plugin = self._foreign_plugin
        cards = self.context.cards.latest or {}
        given = dict.fromkeys(cards, plugin) if plugin is not None else {}
        self.context.cards.foreign = {**given, **self._foreign}

    def _apply(self, findings: Findings, cards: Cards) -> None:
        self.context.event_reporter.recovery_failed(findings.failed)
        before = self._foreign
        unknown = {card: before[card] for card in findings.unknown if card in before}
        for card, problem in findings.foreign.items():
            if before.get(card) != problem:
                text = f"card {card}: {problem.text}{_freeing(cards[card].index)}"
                self.context.event_reporter.warning(CARD_FOREIGN, text)
        self._foreign = unknown | findings.foreign
        self._mark_foreign()
        if findings.recovered:
            self.context.on_change()

    def _report_drs(self, card: Card) -> None:
        reason = self.profile_prober.reason(card)
        if reason is not None and self._without_drs.get(card.address) != reason:
            note = f"card {card.address} is not offered in DRS mode: {reason}"
            self.context.event_reporter.normal(CARD_WITHOUT_DRS, note)
        self._without_drs[card.address] = reason or ""

    def _pause(self) -> float:
        if self.context.card_configs.known:
            self._backoff.reset()
            return self.interval
        return self._backoff.next()


def _freeing(index: int) -> str:
    """How a person frees the card with that `index` of efsmi; the driver cannot know whether a
    foreign instance is in use."""
    tool = f"`efsmi -i {index}"
    return (
        f"; if no program and no pod uses it, free it: {tool} -L` has the ids, {tool} --drs "
        f"--destroy-instance ID` for each, then {tool} --drs off`"
    )
