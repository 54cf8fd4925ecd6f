"""The steps of the agent's start, from the first inventory to the first publication."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from prometheus_client import CollectorRegistry

from dra_driver.agent.context import AgentContext
from dra_driver.agent.device_plugin.frontend import DevicePluginFrontend
from dra_driver.agent.dra.frontend import DraFrontend
from dra_driver.agent.events import MODE_CHOSEN, EventReporter
from dra_driver.agent.lifecycle.mode_handover import has_claims, has_container_allocations
from dra_driver.agent.lifecycle.node_checks import NodeChecks
from dra_driver.agent.lifecycle.serving_mode import ServingMode, ServingModeSelector
from dra_driver.agent.lifecycle.startup import Step
from dra_driver.agent.metrics import NodeCollector
from dra_driver.agent.reconcile_loop import ReconcileLoop
from dra_driver.agent.slices.device_layout import Devices
from dra_driver.device_plugin.card_count import CardCount
from dra_driver.kubelet_api.pod_resources import ContainerList
from dra_driver.model.errors import GcuError
from dra_driver.node.recovery.recovery import Recovery

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BringUp:
    """The order of `steps` matters.

    Recovery needs the first inventory. No call is answered, and no metric is read from the journal,
    before recovery has made journal, CDI files and cards agree. Nothing is published before claims
    can be prepared. A failed inventory stops nothing: pods can end without it. `card_count` is None
    if the node's cards are not counted as a resource.
    """

    context: AgentContext
    _: KW_ONLY
    recovery: Recovery
    dra: DraFrontend
    device_plugin: DevicePluginFrontend
    card_count: CardCount | None
    selector: ServingModeSelector
    reconcile_loop: ReconcileLoop
    registry: CollectorRegistry
    containers: ContainerList
    node_checks: NodeChecks
    event_reporter: EventReporter

    @property
    def steps(self) -> Sequence[Step]:
        return (
            self.context.cards.start,
            self.recover,
            self._export_ledger,
            self._serve,
            self.reconcile_loop.run_once,
            self.reconcile_loop.start,
            self._choose_mode,
            self._serve,
            self.reconcile_loop.detect_foreign_plugins,
            self._publish,
            self.node_checks.run,
        )

    def recover(self) -> None:
        """Open the journal, and make it agree with the CDI files; raises JournalError, CdiError."""
        self.context.journal.open()
        report = self.recovery.run()
        if self.context.journal.was_missing and report.adopted:
            self.event_reporter.journal_rebuilt(report.adopted)
        self.event_reporter.recovery_failed(report.failed)

    def _export_ledger(self) -> None:
        """Add the metrics of the ledger, which could not be read before."""
        collector = NodeCollector(
            cards=lambda: self.context.cards.latest,
            devices=self._devices,
            ledger=self.context.journal.snapshot,
            containers=self.containers.read,
        )
        self.registry.register(collector)

    def _serve(self) -> None:
        """Answer the kubelet in the serving mode, and for all devices that are in use. Raises
        SocketError. The mode may be unknown without the API server; pods can end all the same."""
        ledger, serving = self.context.journal.snapshot(), self.context.serving
        if has_claims(ledger) or (serving.decision is not None and serving.decision.has_dra):
            self.dra.serve()
        if has_container_allocations(ledger) or serving.is_mode(ServingMode.DEVICE_PLUGIN):
            self.device_plugin.serve()
        if self.card_count is not None:
            self.card_count.serve()

    def _choose_mode(self) -> None:
        try:
            decision = self.context.serving.decision = self.selector.choose()
        except GcuError:
            self.device_plugin.announce()
            raise
        logger.info("%s", decision)
        self.event_reporter.normal(MODE_CHOSEN, str(decision))

    def _publish(self) -> None:
        serving = self.context.serving
        if serving.decision is not None and serving.decision.has_dra:
            self.dra.publish()
        if serving.is_mode(ServingMode.DEVICE_PLUGIN):
            self.device_plugin.annotate()
        self.context.on_change()  # the devices depend on the serving mode

    def _devices(self) -> Devices:
        if self.context.serving.is_mode(ServingMode.DEVICE_PLUGIN):
            return self.device_plugin.devices
        return self.dra.devices
