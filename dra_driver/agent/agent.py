"""Builds the agent from its parts, bottom-up: a part is given only parts that exist already."""

from __future__ import annotations

import logging
from pathlib import Path

from prometheus_client import CollectorRegistry

from dra_driver.agent import metric_specs as specs
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.cards.foreign_plugin import ForeignPluginDetector
from dra_driver.agent.cards.node_hardware import node_hardware
from dra_driver.agent.cards.node_labels import node_labeller
from dra_driver.agent.context import AgentContext
from dra_driver.agent.device_plugin.frontend import DevicePluginFrontend
from dra_driver.agent.dra.frontend import DraFrontend
from dra_driver.agent.events import MODE_CHOSEN, EventReporter
from dra_driver.agent.lifecycle.bring_up import BringUp
from dra_driver.agent.lifecycle.node_checks import NodeChecks
from dra_driver.agent.lifecycle.readiness import ReadinessReporter
from dra_driver.agent.lifecycle.serving_mode import (
    ServingDecision,
    ServingModeSelector,
    ServingModeWatcher,
    ServingState,
)
from dra_driver.agent.lifecycle.startup import Startup
from dra_driver.agent.metrics import AgentMetrics
from dra_driver.agent.prepared_claims import ForgottenClaims, UnknownClaimDetector
from dra_driver.agent.reconcile_loop import ReconcileLoop
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.slices.slice_totals import SliceTotals
from dra_driver.config.card_rules import load_card_rules
from dra_driver.device_plugin.card_count import CardCount
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.kube.api import Api
from dra_driver.kube.events import EventRecorder
from dra_driver.kubelet_api.pod_resources import ContainerList, PodResources
from dra_driver.kubelet_api.sockets import Folders, file_identity
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.cdi.metadata import MetadataDirectory
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.locks import Locks
from dra_driver.node.modes.driver import all_modes
from dra_driver.node.preparer import Preparer
from dra_driver.node.recovery.profile_prober import ProfileProber
from dra_driver.node.recovery.reconciler import NodeReconciler
from dra_driver.node.recovery.recovery import Recovery
from dra_driver.telemetry.program import Deadline
from dra_driver.util.hooks import ChangeHook, OnChange

logger = logging.getLogger(__name__)

# Seconds for the kubelet's answer about pods: a scrape waits for it, or the agent's start.
_KUBELET_SCRAPE, _KUBELET_START = 2.0, 10.0
_STOP_WITHIN = 10.0  # seconds for running calls of the kubelet, and for the threads


class Agent:
    """Constructing it has no effect. `start` starts everything and returns at once."""

    def __init__(
        self,
        settings: AgentSettings,
        api: Api,
        *,
        effects: Effects,
        registry: CollectorRegistry | None = None,
        on_restart: OnChange = lambda: None,
    ) -> None:
        """`registry` takes the metrics. `on_restart` is called when the agent must be restarted,
        because the node is to be served in another mode."""
        state = settings.state_directory
        self._on_restart = on_restart
        self.registry = registry or CollectorRegistry()

        # What other parts report to.
        metrics = AgentMetrics(self.registry)
        on_change, on_cards = ChangeHook(), ChangeHook()
        self._recorder = EventRecorder(
            api, controller=f"{DRIVER}/agent", instance=settings.pod_name or settings.node_name
        )
        self._event_reporter = EventReporter(self._recorder, settings.node_name)

        def on_damaged(damaged: Path) -> None:
            metrics.journal_quarantined()
            self._event_reporter.journal_damaged(damaged)

        # The cards, and what is known of them.
        self._cards, drs, self._mounts = node_hardware(
            settings,
            effects=effects,
            metrics=metrics,
            event_reporter=self._event_reporter,
            on_change=on_cards,
        )
        self._card_configs = CardConfigSource(
            api, settings.node_name, load_card_rules(settings.card_rules), on_change=on_change
        )
        tables = ProfileTables(state, effects=effects)
        published = SliceCache()

        # Prepared claims: the journal, the CDI files, the locks.
        self._journal = Journal(state, effects=effects, on_damaged=on_damaged)
        cdi = CdiDirectory(settings.cdi_dir, effects=effects)
        locks = Locks(state / "locks")
        failures = DeviceCircuitBreaker(on_tripped=self._event_reporter.device_failing)
        claim_manager = PreparedClaimManager(
            hardware=self._cards,
            journal=self._journal,
            cdi=cdi,
            metadata=MetadataDirectory(
                settings.kubelet_root / "plugins" / DRIVER / "dra-device-metadata", effects=effects
            ),
            locks=locks,
            injection=Injection(settings.injection),
            modes=all_modes(
                drs=drs,
                tables=tables,
                journal=self._journal,
                slice_count=SliceTotals(self._journal.snapshot, published, self._card_configs),
            ),
            failures=failures,
            on_recreated=self._event_reporter.instance_recreated,
        )
        preparer = Preparer(
            api=api,
            claim_manager=claim_manager,
            journal=self._journal,
            locks=locks,
            node_name=settings.node_name,
            on_prepared=metrics.on_prepared,
        )

        # The front ends, which serve the kubelet.
        selector = ServingModeSelector(api, settings.node_name, settings.mode)
        context = AgentContext(
            api=api,
            cards=self._cards,
            card_configs=self._card_configs,
            tables=tables,
            journal=self._journal,
            preparer=preparer,
            failures=failures,
            published=published,
            serving=ServingState(selector.fixed),
            effects=effects,
            on_change=on_change,
        )
        self._dra = DraFrontend(
            settings, context, metrics=metrics, event_reporter=self._event_reporter
        )
        self._device_plugin = DevicePluginFrontend(settings, context, metrics=metrics)
        self._card_count = CardCount(
            context.by_address,
            kubelet_root=settings.kubelet_root,
            pod_uid=settings.pod_uid,
            effects=effects,
        )
        folders = Folders.of(settings.kubelet_root)
        self._labeller = node_labeller(
            api,
            settings.node_name,
            cards=lambda: self._cards.latest,
            kubelet=lambda: file_identity(folders.kubelet),
        )
        self._labels_node = settings.node_labels
        for follower in (self._dra, self._device_plugin, self._card_count):
            on_change.subscribe(follower.wake)
        on_cards.subscribe(on_change)
        on_cards.subscribe(self._dra.notify_health)

        # The threads that keep the node in order, and the start.
        kubelet = PodResources(folders.pod_resources, _KUBELET_START)
        foreign_plugins = ForeignPluginDetector(kubelet.offered, kubelet.containers)
        specs.FOREIGN_PODS.register(self.registry).set_function(lambda: foreign_plugins.pod_count)
        self._watcher = ServingModeWatcher(selector.choose, self._restart)
        self._reconcile_loop = ReconcileLoop(
            cards=self._cards,
            card_configs=self._card_configs,
            foreign_plugins=foreign_plugins,
            containers=kubelet.containers,
            unknown_claims=UnknownClaimDetector(self._journal.snapshot),
            forgotten_claims=ForgottenClaims(
                api, ledger=self._journal.snapshot, unprepare=claim_manager.unprepare
            ),
            reconciler=NodeReconciler(
                claim_manager=claim_manager,
                journal=self._journal,
                locks=locks,
                drs=drs,
            ),
            profile_prober=ProfileProber(
                drs=drs,
                tables=tables,
                journal=self._journal,
                locks=locks,
            ),
            event_reporter=self._event_reporter,
            journal=self._journal,
            on_change=on_change,
            interval=settings.reconcile_interval,
        )
        self._bring_up = BringUp(
            context,
            recovery=Recovery(
                claim_manager=claim_manager,
                journal=self._journal,
                cdi=cdi,
                locks=locks,
            ),
            dra=self._dra,
            device_plugin=self._device_plugin,
            card_count=self._card_count if settings.count_cards else None,
            selector=selector,
            watcher=self._watcher,
            reconcile_loop=self._reconcile_loop,
            registry=self.registry,
            containers=ContainerList(PodResources(folders.pod_resources, _KUBELET_SCRAPE)),
            node_checks=NodeChecks(
                api,
                settings.node_name,
                has_exclusive_cpus=kubelet.has_exclusive_cpus,
                serving=context.serving,
                injection=Injection(settings.injection),
                injection_method=self._device_plugin.injection_method,
                event_reporter=self._event_reporter,
            ),
            event_reporter=self._event_reporter,
        )
        self._startup = Startup(self._bring_up.steps)
        self._readiness = ReadinessReporter(self.ready, self._event_reporter)

    def start(self) -> None:
        """Run the steps of the start until they succeed, in the background."""
        self._recorder.start()
        self._startup.start()
        self._readiness.start()
        if self._labels_node:
            self._labeller.start()

    def stop(self, within: float = _STOP_WITHIN) -> None:
        """Stop serving, within so many seconds. Slices and prepared claims stay, as the cards
        do."""
        deadline = Deadline(within)
        self._readiness.stop(deadline.left())
        self._startup.stop(deadline.left())
        self._watcher.stop(deadline.left())
        self._labeller.stop(deadline.left())
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
        """Why the node does not serve GCUs right now; None if it serves them."""
        return (
            self._startup.problem
            or self._mounts.problem
            or self._cards.problem
            or self._card_configs.problem
            or self._dra.problem
            or self._device_plugin.problem
        )

    def live(self) -> str | None:
        """Which thread ended, which socket does not answer, or which mount is outdated: only a
        restart of the container helps. None if all is well."""
        threads = {
            "the start": self._startup.is_alive(),
            "the readiness reporter": self._readiness.is_alive(),
            "the writer of events": self._recorder.is_alive(),
            "the writer of labels": self._labeller.is_alive() or not self._labels_node,
        }
        if self._startup.done.is_set():
            threads |= {
                "the card cache": self._cards.is_alive(),
                "the reconcile loop": self._reconcile_loop.is_alive(),
                "the serving mode watcher": self._watcher.is_alive(),
                "the thread of the card count": self._card_count.is_alive(),
                **self._dra.threads(),
                **self._device_plugin.threads(),
            }
        for name, alive in threads.items():
            if not alive:
                return f"{name} ended unexpectedly; see the log"
        return self._dra.fault() or self._mounts.problem

    def _restart(self, decision: ServingDecision) -> None:
        logger.warning("the agent restarts: %s", decision)
        self._event_reporter.normal(MODE_CHOSEN, f"{decision}; the agent restarts")
        self._on_restart()
