"""The agent's front end without DRA: the device plugin, and the annotations of the Node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dra_driver.agent.context import AgentContext
from dra_driver.agent.lifecycle.mode_handover import plugin_cards
from dra_driver.agent.lifecycle.serving_mode import ServingMode, kubelet_version
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.desired_devices import DesiredDevices
from dra_driver.agent.slices.device_layout import Devices
from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.inventory import NodeDevices
from dra_driver.device_plugin.node_annotations import node_metadata
from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.device_plugin.plugin import DevicePlugin
from dra_driver.kube.container_runtime import KUBELET_TAKES_CDI_NAMES
from dra_driver.kube.node_metadata import NodeMetadataWriter
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.kubelet_api.device_plugin.record import known_checkpoint
from dra_driver.kubelet_api.sockets import SocketError, file_identity
from dra_driver.model.card import Cards, Problem
from dra_driver.model.names import FIELD_MANAGER, TAINT_CHANGING
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.spec import Injection
from dra_driver.util.background import Background

# Seconds. A kubelet that starts fails the pods whose devices no plugin lists, so register in time.
_REGISTER_AFTER: Final = 5.0
# Seconds by which the agent's watch of pods may lag behind the kubelet's. The kubelet admits no
# other pod meanwhile. Only a static pod takes so long: its mirror pod is created afterwards.
_PODS_LAG: Final = 5.0


class DevicePluginFrontend:
    """Constructing it has no effect. If it is not the serving mode, it serves the containers that
    have devices until they end. It registers with the kubelet when the serving mode and the cards
    are known, or after `_REGISTER_AFTER` seconds. `serve` does nothing when it is called again."""

    def __init__(self, settings: AgentSettings, context: AgentContext) -> None:
        self._settings = settings
        self._context = context
        self._takes_cdi: bool | None = None
        folders = context.folders
        here = f"spec.nodeName={settings.node_name}"
        pods = NodePods(
            lambda: context.api.list(PODS, field_selector=here).items, lag=self._pods_lag
        )
        self._pods = Reflector(context.api, PODS, pods, field_selector=here)
        self._plugin = DevicePlugin(
            view=self._view,
            claim_manager=context.preparer.claim_manager,
            hardware=context.cards,
            takes_cdi_names=self.takes_cdi_names,
            on_change=context.on_change,
            node_name=settings.node_name,
            folders=folders,
            release_interval=settings.release_interval,
            register_after=_REGISTER_AFTER,
            pods=pods,
            measure=context.metrics.allocating,
            effects=context.effects,
        )
        self._annotator = NodeMetadataWriter(
            "node-annotator",
            context.api,
            settings.node_name,
            wanted=lambda: node_metadata(
                self._annotated_view(), known_checkpoint(folders.checkpoint)
            ),
            field_manager=FIELD_MANAGER,
            kubelet=lambda: file_identity(folders.kubelet),
        )
        self.server: Background = self._plugin
        self.writers: Sequence[Background] = (self._annotator, self._pods)

    def serve(self) -> None:
        """Answer the kubelet; raises SocketError."""
        plugins = self._context.folders.plugins
        if self._settings.mode == "dra" and not plugins.is_dir():
            # The chart mounts it only if the agent may have to serve the device plugin.
            raise SocketError(
                f"containers have cards from the device plugin, and {plugins}, where the kubelet "
                "records them, is not mounted in mode dra",
                remedy="set the chart's mode to auto until these containers have ended",
            )
        self._plugin.serve()

    def annotate(self) -> None:
        """Annotate the Node with its cards, by which pods are placed, and watch its pods."""
        for part in reversed(self.writers):
            part.start()

    def wake(self) -> None:
        """A card or its use has changed."""
        self._plugin.notify()
        context = self._context
        knows_all = (
            context.serving.decision is not None
            and context.card_configs.known
            and context.cards.latest is not None
        )
        if self._plugin.is_started and knows_all:
            self._plugin.announce()
        self._annotator.wake()

    @property
    def problem(self) -> str | None:
        """Why devices are not served right now; None if they are, or need not be."""
        served = self._plugin.problem() if self._plugin.is_started else None
        return served or (self._annotator.problem if self._annotator.is_started else None)

    def _pods_lag(self) -> float:
        return _PODS_LAG if self._pods.problem is None else 0.0

    def _view(self) -> NodeDevices:
        return NodeDevices(
            cards=self._cards(),
            ledger=self._context.journal.snapshot(),
            offer=self._offer,
            table=self._context.tables.table,
            active=self._context.serving.is_mode(ServingMode.DEVICE_PLUGIN),
            failing=self._context.failures.tripped(),
        )

    def _annotated_view(self) -> NodeDevices:
        """Without cards while their configuration is unknown: pods are placed by it."""
        view = self._view()
        return view if self._context.card_configs.known else replace(view, cards=None)

    def _offer(self, card: PciAddress) -> CardConfig:
        """No mode while the configuration is unknown. Devices in use are listed all the same."""
        configs = self._context.card_configs
        return configs.of(card) if configs.known else CardConfig(modes=frozenset())

    def _cards(self) -> Cards | None:
        """None while they have not been read."""
        cards, failing = self._context.cards.latest, self._context.cards.failing
        if cards is None or failing is None:
            return cards
        # None is given to a container, but those in use stay healthy.
        problem = Problem(TAINT_CHANGING, "", failing.text)
        return {address: card.with_problem(problem) for address, card in cards.items()}

    def takes_cdi_names(self) -> bool:
        """`TakesCdiNames`; raises KubeError and InvalidValue while the kubelet's version is
        unknown."""
        # The device nodes that the vendor's runtime adds are not in the container's specification,
        # and an update by the static CPU manager would remove them. So the answer names them, too,
        # as the vendor's plugin does with --pass-device-specs (its K8S manual, "cpumanager").
        if Injection(self._settings.injection) is Injection.RUNTIME:
            return False
        if self._takes_cdi is None:
            version = kubelet_version(self._context.api, self._settings.node_name)
            self._takes_cdi = (version.major, version.minor) >= KUBELET_TAKES_CDI_NAMES
        return self._takes_cdi


def unpublished_devices(context: AgentContext) -> Devices:
    """The devices with their taints, as DRA would publish them: for the metrics. Empty while the
    cards have not been read; raises JournalError.

    No taint has the effect NoExecute, because nothing would delete the pods. A card in use that
    was not found since the agent's start is lost; other cards that were not found are unknown.
    """
    ledger, cards = context.journal.snapshot(), context.cards.latest
    if cards is None:
        return ()
    claims = ledger.claims.values()
    devices = (device for claim in claims for device in claim.devices)
    gone = {device.device_name for device in devices if device.card not in cards}
    desired = DesiredDevices(
        context,
        select=lambda cards: plugin_cards(cards, ledger),
        in_use=lambda: frozenset(card for claim in claims for card in claim.cards),
        evict=(),
        evicting=False,
    )
    return desired([{"name": name} for name in gone]) or ()
