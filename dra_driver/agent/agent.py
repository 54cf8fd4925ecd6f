"""The agent: everything of the node side put together, in the order it must start."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.cards.foreign_plugin import ForeignPluginDetector
from dra_driver.agent.cards.node_hardware import node_hardware
from dra_driver.agent.context import AgentContext
from dra_driver.agent.device_plugin.frontend import DevicePluginFrontend
from dra_driver.agent.dra.frontend import DraFrontend
from dra_driver.agent.events import (
    DEVICE_FAILING,
    JOURNAL_DAMAGED,
    RECOVERY_FAILED,
    WAY_CHOSEN,
    EventReporter,
)
from dra_driver.agent.lifecycle.mode_handover import has_claims, has_grants
from dra_driver.agent.lifecycle.readiness import ReadinessReporter
from dra_driver.agent.lifecycle.serving_mode import (
    ServingDecision,
    ServingMode,
    ServingModeSelector,
)
from dra_driver.agent.lifecycle.serving_mode_watcher import ServingModeWatcher
from dra_driver.agent.lifecycle.startup import Startup
from dra_driver.agent.metrics import Metrics, NodeCollector
from dra_driver.agent.reconcile_loop import ReconcileLoop
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.slices.slice_totals import slice_total
from dra_driver.config.card_rules import load_card_rules
from dra_driver.device_plugin.card_count import CardCount
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.kube.api import Api
from dra_driver.kube.events import EventRecorder
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claim_reader import ApiReader
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.locks import Locks
from dra_driver.node.modes.all_modes import all_modes
from dra_driver.node.preparer import Preparer
from dra_driver.node.recovery.profile_prober import ProfileProber
from dra_driver.node.recovery.reconciler import Reconciler
from dra_driver.node.recovery.recovery import Recovery
from dra_driver.telemetry.program import Deadline

logger = logging.getLogger(__name__)

_END = 10.0  # seconds to stop: for calls of the kubelet that run, and what they leave for the rest


class Agent:
    """Constructing it has no effect; `start` begins everything and returns at once.

    The order matters: recovery needs the cards to have been looked at, nothing is answered and no
    metric is read from the journal before recovery made journal, CDI files and cards agree, and
    nothing is published before claims can be prepared. Hardware that cannot be read holds nothing
    up: pods can end without it.
    """

    def __init__(
        self,
        settings: AgentSettings,
        api: Api,
        *,
        effects: Effects,
        registry: CollectorRegistry | None = None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        """`registry` takes the metrics. `end` is called when the agent must be started anew, to
        serve the node otherwise."""
        self._end = end
        state = settings.state_directory
        self.registry = registry or CollectorRegistry()
        self._metrics = Metrics(self.registry)
        self._recorder = EventRecorder(
            api, controller=f"{DRIVER}/agent", instance=settings.pod_name or settings.node_name
        )
        self._event_reporter = EventReporter(self._recorder, settings.node_name)
        self._failures = DeviceCircuitBreaker(closed=self._tell_closed)
        self._card_configs = CardConfigSource(
            api,
            settings.node_name,
            load_card_rules(settings.card_rules),
            changed=self._wake,
        )
        self._cdi = CdiDirectory(settings.cdi_dir, effects=effects)
        self._journal = Journal(state, effects=effects, damaged=self._on_damage)
        self._locks = Locks(state / "locks")
        self._tables = ProfileTables(state, effects=effects)
        hardware = node_hardware(
            settings,
            effects=effects,
            measured=self._metrics.efsmi_call,
            event_reporter=self._event_reporter,
            changed=self._on_cards,
        )
        self._cards = hardware.cards
        self._silence = hardware.silence
        self._mounts = hardware.mounts
        preparer = self._make_preparer(settings, api, hardware.drs)
        self._claim_manager = preparer.claim_manager
        shared = AgentContext(
            api=api,
            cards=self._cards,
            card_configs=self._card_configs,
            tables=self._tables,
            journal=self._journal,
            preparer=preparer,
            failures=self._failures,
            effects=effects,
        )
        self._dra = DraFrontend(
            settings,
            shared,
            metrics=self._metrics,
            offering=lambda: self._is(ServingMode.DRA),
            event_reporter=self._event_reporter,
            changed=self._wake,
        )
        self._device_plugin = DevicePluginFrontend(
            settings,
            shared,
            metrics=self._metrics,
            offering=lambda: self._is(ServingMode.DEVICE_PLUGIN),
            chosen=lambda: self._choice is not None,
            changed=self._wake,
        )
        self._counts_cards = settings.count_cards
        self._card_count = CardCount(
            shared.by_address,
            kubelet_root=settings.kubelet_root,
            pod_uid=settings.pod_uid,
            effects=effects,
        )
        self._selector = ServingModeSelector(api, settings.node_name, settings.mode)
        self._way_watch = ServingModeWatcher(self._selector.choose, self._move_over)
        self._choice = self._selector.fixed
        self._reconcile_loop = self._make_reconcile_loop(settings, api, hardware.drs)
        self._startup = Startup(
            [
                self._cards.start,
                self._recover,
                self._export_state,
                self._serve,
                self._reconcile_loop.run_once,
                self._reconcile_loop.start,
                self._choose,
                self._serve,
                self._reconcile_loop.detect_foreign_plugins,
                self._publish,
            ]
        )
        self._readiness = ReadinessReporter(self.ready, self._event_reporter)

    def start(self) -> None:
        """Run the steps of the start until they succeed, in the background."""
        self._recorder.start()
        self._startup.start()
        self._readiness.start()

    def stop(self, within: float = _END) -> None:
        """Stop serving, within so many seconds. Slices and prepared claims stay: the cards are
        still there."""
        deadline = Deadline(within)
        self._readiness.stop(deadline.left())
        self._startup.stop(deadline.left())
        self._way_watch.stop(deadline.left())
        self._dra.withdraw(deadline.left())
        self._device_plugin.withdraw(deadline.left())
        self._card_count.withdraw(deadline.left())
        self._reconcile_loop.stop(deadline.left())
        self._cards.stop(deadline.left())
        self._dra.stop(deadline.left())
        self._device_plugin.stop(deadline.left())
        self._journal.close()
        self._recorder.stop(deadline.left())

    def ready(self) -> str | None:
        """Why the node does not serve GCUs right now, or None."""
        return (
            self._startup.problem
            or self._mounts.problem
            or self._cards.problem
            or self._card_configs.problem
            or self._dra.problem
            or self._device_plugin.problem
        )

    def live(self) -> str | None:
        """Which thread ended, which socket is deaf, or which mount is out of date: what only a new
        container mends."""
        alive = {
            "the start": self._startup.is_alive,
            "the look at the agent's own state": self._readiness.is_alive,
            "the writer of events": self._recorder.is_alive,
        }
        if self._startup.done.is_set():
            alive |= {
                "the look at the cards": self._cards.is_alive,
                "the care for the node": self._reconcile_loop.is_alive,
                "the look at what the cluster offers": self._way_watch.is_alive,
                "the watch over the count of cards": self._card_count.is_alive,
                **self._dra.checks(),
                **self._device_plugin.checks(),
            }
        ended = [name for name, check in alive.items() if not check()]
        if ended:
            return f"{ended[0]} ended unexpectedly; see the log"
        return self._dra.fault() or self._mounts.problem

    def _make_preparer(self, settings: AgentSettings, api: Api, drs: Drs) -> Preparer:
        return Preparer(
            claims=ApiReader(api),
            hardware=self._cards,
            journal=self._journal,
            cdi=self._cdi,
            locks=self._locks,
            node_name=settings.node_name,
            injection=Injection(settings.injection),
            steps=all_modes(
                drs=drs,
                tables=self._tables,
                journal=self._journal,
                slice_count=self._slice_count,
            ),
            failures=self._failures,
            on_recreated=self._event_reporter.instance_recreated,
        )

    def _make_reconcile_loop(self, settings: AgentSettings, api: Api, drs: Drs) -> ReconcileLoop:
        return ReconcileLoop(
            cards=self._cards,
            card_configs=self._card_configs,
            foreign_plugins=ForeignPluginDetector(
                api,
                settings.node_name,
                ours=lambda: self._choice is None or self._device_plugin.serves,
            ),
            reconciler=Reconciler(
                claim_manager=self._claim_manager, journal=self._journal, locks=self._locks, drs=drs
            ),
            profile_prober=ProfileProber(
                drs=drs,
                tables=self._tables,
                journal=self._journal,
                locks=self._locks,
                free=_free_where_unheld,
            ),
            event_reporter=self._event_reporter,
            changed=self._wake,
            rebuilt=self._journal.rebuilt,
            interval=settings.care_interval,
        )

    def _recover(self) -> None:
        if not self._journal.open().complete:
            self._reconcile_loop.mark_incomplete()
        report = Recovery(
            claim_manager=self._claim_manager,
            journal=self._journal,
            cdi=self._cdi,
            locks=self._locks,
            silence=self._silence,
            hung=self._cards.hung_calls,
        ).run()
        for uid, error in report.failed.items():
            self._event_reporter.warning(RECOVERY_FAILED, f"claim with UID {uid}: {error}")

    def _export_state(self) -> None:
        """Add to the metrics what the journal has, which could not be read before."""
        self.registry.register(NodeCollector(devices=self._devices, ledger=self._journal.snapshot))

    def _serve(self) -> None:
        """Answer the kubelet for the way that is chosen, and for what is held in either; raises
        SocketError. Without the API server no way may be chosen yet, and pods end all the same."""
        ledger = self._journal.snapshot()
        choice = self._choice
        if has_claims(ledger) or (choice is not None and choice.has_dra):
            self._dra.serve()
        if has_grants(ledger) or self._is(ServingMode.DEVICE_PLUGIN):
            self._device_plugin.serve()
        if self._counts_cards:
            self._card_count.serve()

    def _choose(self) -> None:
        try:
            choice = self._choice = self._selector.choose()
        except GcuError:
            self._device_plugin.announce()
            raise
        logger.info("%s", choice)
        self._event_reporter.normal(WAY_CHOSEN, str(choice))
        if self._selector.can_change:
            self._way_watch.follow(choice)

    def _publish(self) -> None:
        if self._choice is not None and self._choice.has_dra:
            self._dra.publish()
        if self._is(ServingMode.DEVICE_PLUGIN):
            self._device_plugin.report()
        self._wake()  # what is offered depends on the choice

    def _move_over(self, choice: ServingDecision) -> None:
        logger.warning("the agent restarts: %s", choice)
        self._event_reporter.normal(WAY_CHOSEN, f"{choice}; the agent restarts")
        self._end()

    def _is(self, way: ServingMode) -> bool:
        return self._choice is not None and self._choice.mode is way

    def _devices(self) -> Devices:
        front = self._device_plugin if self._is(ServingMode.DEVICE_PLUGIN) else self._dra
        return front.devices

    def _slice_count(self, card: PciAddress) -> int:
        return slice_total(
            self._journal.snapshot(),
            card,
            published=self._dra.slice_count(card),
            rule=self._card_configs.of(card).slice_count,
        )

    def _on_cards(self) -> None:
        self._wake()
        self._dra.notify_health()

    def _tell_closed(self, device: str, reason: str) -> None:
        self._event_reporter.warning(
            DEVICE_FAILING, f"device {device} takes no new claim for now: {reason}"
        )

    def _on_damage(self, kept: Path) -> None:
        self._reconcile_loop.mark_incomplete()
        self._metrics.journal_set_aside()
        self._event_reporter.warning(
            JOURNAL_DAMAGED, f"the journal was damaged and is rebuilt; what was there is in {kept}"
        )

    def _wake(self) -> None:
        """A card has changed, or what is held of one."""
        self._dra.wake()
        self._device_plugin.wake()
        self._card_count.wake()


def _free_where_unheld(_card: PciAddress) -> bool:
    """The journal, which is asked besides, is enough: a claim that is allocated and not prepared
    has no container yet, and its prepare waits for the card's lock (ADR 8). The agent may not
    list claims."""
    return True
