"""Builds the agent from its parts, bottom-up: a part is given only parts that exist already."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from dra_driver.agent import metric_specs as specs
from dra_driver.agent.card_metrics import NodeCollector
from dra_driver.agent.cards.node_labels import node_labels
from dra_driver.agent.context import AgentContext
from dra_driver.agent.device_plugin.frontend import DevicePluginFrontend, unpublished_devices
from dra_driver.agent.dra.frontend import DraFrontend
from dra_driver.agent.events import MODE_CHOSEN
from dra_driver.agent.lifecycle.node_checks import NodeChecks
from dra_driver.agent.lifecycle.readiness import ReadinessReporter
from dra_driver.agent.lifecycle.serving_mode import ServingMode
from dra_driver.agent.lifecycle.startup import Startup, Step
from dra_driver.agent.reconcile_loop import ReconcileLoop
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.device_layout import Devices
from dra_driver.device_plugin.card_count import CardCount
from dra_driver.kube.api import Api
from dra_driver.kube.node_metadata import NodeMetadataWriter
from dra_driver.kubelet_api.pod_resources import ContainerList, PodResources
from dra_driver.kubelet_api.sockets import file_identity
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.effects import Effects
from dra_driver.model.names import FIELD_MANAGER_LABELS
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.recovery.profile_prober import ProfileProber
from dra_driver.node.recovery.reconciler import NodeReconciler, recover_all
from dra_driver.telemetry.program import Deadline
from dra_driver.util.background import Background
from dra_driver.util.hooks import OnChange

_KUBELET_SCRAPE = 2.0  # seconds for the kubelet's answer about pods: a scrape waits for it
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
        self._settings = settings
        self._on_restart = on_restart
        self.registry = registry or CollectorRegistry()
        self._context = context = AgentContext(
            settings, api, effects=effects, registry=self.registry
        )
        self._cards = context.cards

        # The front ends, which serve the kubelet.
        self._dra = DraFrontend(settings, context)
        self._device_plugin = DevicePluginFrontend(settings, context)
        self._card_count = CardCount(
            lambda: context.cards.latest, folders=context.folders, effects=effects
        )
        self._labeller = NodeMetadataWriter(
            "node-labels",
            api,
            settings.node_name,
            wanted=lambda: node_labels(context.cards.latest),
            field_manager=FIELD_MANAGER_LABELS,  # another than that of the annotations: both stay
            kubelet=lambda: file_identity(context.folders.kubelet),
        )
        for follower in (self._dra, self._device_plugin, self._card_count):
            context.on_change.subscribe(follower.wake)
        context.on_cards.subscribe(context.on_change)
        context.on_cards.subscribe(self._dra.notify_health)

        # The threads that keep the node in order, and the start.
        self._scraped = ContainerList(PodResources(context.folders.pod_resources, _KUBELET_SCRAPE))
        self._reconcile_loop = loop = self._made_reconcile_loop()
        specs.FOREIGN_PODS.register(self.registry).set_function(lambda: loop.foreign_pods)
        self._node_checks = NodeChecks(
            context,
            settings.node_name,
            injection=Injection(settings.injection),
            takes_cdi_names=self._device_plugin.takes_cdi_names,
        )
        self._startup = Startup(self._steps())
        self._readiness = ReadinessReporter(self.ready, context.event_reporter)
        self._parts: Sequence[Background] = (  # in the order in which they are stopped
            self._readiness,
            self._startup,
            self._labeller,
            self._dra.server,
            self._device_plugin.server,
            self._card_count,
            self._reconcile_loop,
            self._cards,
            *self._dra.writers,
            *self._device_plugin.writers,
        )

    def _made_reconcile_loop(self) -> ReconcileLoop:
        context, claim_manager = self._context, self._context.preparer.claim_manager
        return ReconcileLoop(
            context=context,
            deleted_claims=self._dra.deleted_claims,
            reconciler=NodeReconciler(
                claim_manager=claim_manager,
                journal=context.journal,
                locks=context.locks,
                drs=context.drs,
            ),
            profile_prober=ProfileProber(
                drs=context.drs,
                tables=context.tables,
                journal=context.journal,
                locks=context.locks,
            ),
            on_run=self._check_mode,
            interval=self._settings.reconcile_interval,
        )

    def start(self) -> None:
        """Run the steps of the start until they succeed, in the background."""
        self._context.recorder.start()
        self._startup.start()
        self._readiness.start()
        if self._settings.node_labels:
            self._labeller.start()

    def stop(self, within: float = _STOP_WITHIN) -> None:
        """Stop serving, within so many seconds. Slices and prepared claims stay, as the cards
        do."""
        deadline = Deadline(within)
        for part in self._parts:
            part.stop(deadline.left())
        self._context.journal.close()
        self._context.recorder.stop(deadline.left())

    def ready(self) -> str | None:
        """Why the node does not serve GCUs right now; None if it serves them."""
        return (
            self._startup.problem
            or self._context.mounts.problem
            or self._cards.problem
            or self._context.card_configs.problem
            or self._dra.problem
            or self._device_plugin.problem
        )

    def live(self) -> str | None:
        """Which thread ended, which socket does not answer, or which mount is outdated: only a
        restart of the container helps. None if all is well."""
        parts = (*self._parts, self._context.recorder)
        if name := next(filter(None, (part.ended() for part in parts)), None):
            return f"the thread {name} ended unexpectedly; see the log"
        return self._dra.fault() or self._context.mounts.problem

    def _steps(self) -> Sequence[Step]:
        """The start, in this order. Recovery needs the first inventory. No call is answered, and no
        metric is read from the journal, before recovery has made journal, CDI files and cards
        agree. Nothing is published before claims can be prepared. A failed inventory stops nothing:
        pods can end without it."""
        return (
            self._cards.start,
            self._recover,
            self._export_ledger,
            self._serve,
            self._reconcile_loop.run_once,
            self._reconcile_loop.start,
            self._choose_mode,
            self._serve,
            self._reconcile_loop.detect_foreign_plugins,
            self._publish,
            self._node_checks.run,
        )

    def _recover(self) -> None:
        """Open the journal, and make it agree with the CDI files; raises JournalError, CdiError."""
        journal, event_reporter = self._context.journal, self._context.event_reporter
        journal.open()
        report = recover_all(self._context.preparer.claim_manager, journal)
        if journal.was_missing and report.adopted:
            event_reporter.journal_rebuilt(report.adopted)
        event_reporter.recovery_failed(report.failed)

    def _export_ledger(self) -> None:
        """Add the metrics of the ledger, which could not be read before."""
        collector = NodeCollector(
            context=self._context,
            devices=self._devices,
            containers=self._scraped.read,
        )
        self.registry.register(collector)

    def _serve(self) -> None:
        """Answer the kubelet in the serving mode, and for all devices that are in use, also by
        claims with administrative access, which have no card. Raises SocketError. The mode may be
        unknown without the API server; pods can end all the same."""
        claims, serving = self._context.journal.snapshot().claims.values(), self._context.serving
        by_plugin = [isinstance(held.owner, ContainerAllocation) for held in claims]
        if not all(by_plugin) or (serving.decision is not None and serving.decision.has_dra):
            self._dra.serve()
        if any(by_plugin) or serving.is_mode(ServingMode.DEVICE_PLUGIN):
            self._device_plugin.serve()
        if self._settings.count_cards:
            self._card_count.serve()

    def _choose_mode(self) -> None:
        decision = self._context.serving.choose()
        self._context.event_reporter.normal(MODE_CHOSEN, str(decision))

    def _check_mode(self) -> None:
        """Have the agent restarted once an upgrade of the cluster has changed its mode."""
        decision = self._context.serving.changed()
        if decision is None:
            return
        self._context.event_reporter.normal(MODE_CHOSEN, f"{decision}; the agent restarts")
        self._on_restart()

    def _publish(self) -> None:
        serving = self._context.serving
        if serving.decision is not None and serving.decision.has_dra:
            self._dra.publish()
        if serving.is_mode(ServingMode.DEVICE_PLUGIN):
            self._device_plugin.annotate()
        self._context.on_change()  # the devices depend on the serving mode

    def _devices(self) -> Devices:
        if self._context.serving.is_mode(ServingMode.DEVICE_PLUGIN):
            return unpublished_devices(self._context)
        return self._context.published.devices
