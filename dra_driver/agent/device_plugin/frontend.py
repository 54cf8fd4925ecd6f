"""The agent's front for clusters without DRA: the device plugin, for this node's kubelet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from dra_driver.agent.context import AgentContext
from dra_driver.agent.device_plugin.unpublished import UnpublishedDevices
from dra_driver.agent.lifecycle.serving_mode import kubelet_version
from dra_driver.agent.metrics import Metrics
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.device_layout import Devices
from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.allocator import InjectionMethod
from dra_driver.device_plugin.inventory import NodeView
from dra_driver.device_plugin.node_annotator import NodeAnnotator
from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.device_plugin.plugin import DevicePlugin
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.kubelet_api.device_plugin.folders import Folders, socket_identity
from dra_driver.kubelet_api.device_plugin.record import read_checkpoint
from dra_driver.kubelet_api.errors import SocketError
from dra_driver.model.card import Card, Problem
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.spec import Injection
from dra_driver.telemetry.program import Deadline

# From 1.29 on kubelets take CDI names from device plugins without a feature gate (KEP-4009).
_CDI_SINCE: Final = (1, 29)
# A kubelet that starts fails the pods whose devices nobody lists, so it hears of these in time.
_PATIENCE: Final = 5.0
# Seconds by which the watch of the node's pods may be later than the kubelet's own. The kubelet
# takes on no other pod meanwhile. Only a static pod takes so long: its mirror comes afterwards.
_PODS_LAG: Final = 5.0
_NOTHING: Final = CardConfig(modes=frozenset())


class DevicePluginFrontend:
    """Constructing it has no effect. Where it is not `offering`, as new pods are served by DRA, it
    serves the containers that hold something until they end. Until it is `chosen` whether it is,
    and the cards have been looked at, the kubelet is not told of it, but for `_PATIENCE` at most.

    `serve` may be called again and does nothing then. `changed` is called when something was
    given out or released.
    """

    def __init__(
        self,
        settings: AgentSettings,
        shared: AgentContext,
        *,
        metrics: Metrics,
        offering: Callable[[], bool],
        chosen: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._shared = shared
        self._offering = offering
        self._chosen = chosen
        self._takes_cdi: bool | None = None
        self._devices = UnpublishedDevices(shared)
        here = f"spec.nodeName={settings.node_name}"
        pods = NodePods(lambda: shared.api.list(PODS, field_selector=here).items)
        self._pods = Reflector(shared.api, PODS, pods, field_selector=here)
        self._plugin = DevicePlugin(
            view=self._view,
            claim_manager=shared.preparer.claim_manager,
            hardware=shared.cards,
            injection_method=self._injection_method,
            changed=changed,
            node_name=settings.node_name,
            kubelet_root=settings.kubelet_root,
            pod_uid=settings.pod_uid,
            release_interval=settings.release_interval,
            patience=_PATIENCE,
            pods=pods,
            pods_lag=self._pods_lag,
            timed=metrics.timed_devices,
            effects=shared.effects,
        )
        folders = Folders.of(settings.kubelet_root)
        self._reporter = NodeAnnotator(
            shared.api,
            settings.node_name,
            view=self._told_view,
            recorded=lambda: read_checkpoint(folders.checkpoint),
            kubelet=lambda: socket_identity(folders.kubelet),
            clock=time.monotonic,
        )
        self.serves = False
        self._event_reporter = False

    def serve(self) -> None:
        """Answer the kubelet; raises SocketError."""
        plugins = Folders.of(self._settings.kubelet_root).plugins
        if self._settings.mode == "dra" and not plugins.is_dir():
            # The chart mounts it only where the agent may have to serve in it.
            raise SocketError(
                f"containers hold cards that the device plugin gave out, and {plugins}, where the "
                "kubelet has their record, is not mounted in mode dra",
                remedy="let the chart's mode be auto until these containers have ended",
            )
        if not self.serves:
            self._plugin.start()
            self.serves = True

    def report(self) -> None:
        """Tell the Node of its cards, by which pods are placed, and follow these pods."""
        if not self._event_reporter:
            self._pods.start()
            self._reporter.start()
            self._event_reporter = True

    def withdraw(self, grace: float) -> None:
        """Take no call any more, and let running ones end within `grace` seconds."""
        if self.serves:
            self._plugin.stop(grace)

    def stop(self, within: float) -> None:
        """End the rest within so many seconds; what the Node was told stays."""
        deadline = Deadline(within)
        self._reporter.stop(deadline.left())
        self._pods.stop(deadline.left())

    def wake(self) -> None:
        """A card has changed, or what is held of one."""
        if self.serves:
            self._plugin.notify()
            if self._knows_all():
                self._plugin.announce()
        self._reporter.wake()

    def announce(self) -> None:
        """It cannot be said soon what is offered: let the kubelet hear of what is held."""
        if self.serves:
            self._plugin.announce()

    @property
    def devices(self) -> Devices:
        """As DRA would publish them; raises JournalError."""
        return self._devices()

    @property
    def problem(self) -> str | None:
        """Why devices are not served right now, or None; also while nobody asked to."""
        served = self._plugin.problem() if self.serves else None
        return served or (self._reporter.problem if self._event_reporter else None)

    def checks(self) -> Mapping[str, Callable[[], bool]]:
        """Whether each thread that was started lives."""
        served = {"the watch over the device plugin": self._plugin.is_alive}
        reported = {
            "the report of the node's cards": self._reporter.is_alive,
            "the watch over the node's pods": self._pods.is_alive,
        }
        return (served if self.serves else {}) | (reported if self._event_reporter else {})

    def _pods_lag(self) -> float:
        return _PODS_LAG if self._pods.problem is None else 0.0

    def _view(self) -> NodeView:
        cards = self._shared.by_address()
        failing = self._shared.cards.failing
        if cards is not None and failing is not None:
            cards = {address: _doubtful(card, failing) for address, card in cards.items()}
        return NodeView(
            cards=cards,
            ledger=self._shared.journal.snapshot(),
            offer=self._offer,
            table=self._shared.tables.table,
            offering=self._offering(),
            closed=self._shared.failures.tripped(),
        )

    def _told_view(self) -> NodeView:
        """Nothing is said of cards before it is known what they are offered as: pods choose nodes
        by it."""
        view = self._view()
        return view if self._shared.card_configs.known else replace(view, cards=None)

    def _knows_all(self) -> bool:
        shared = self._shared
        return self._chosen() and shared.card_configs.known and shared.by_address() is not None

    def _offer(self, card: PciAddress) -> CardConfig:
        card_configs = self._shared.card_configs
        return card_configs.of(card) if card_configs.known else _NOTHING

    def _injection_method(self) -> InjectionMethod:
        """Raises KubeError while it is not known which kubelet this is."""
        # What the vendor's runtime brings is not in the container's specification, and the static
        # CPU manager's update takes it away again: so the nodes are named there, too, as the
        # vendor's own plugin does with --pass-device-specs (its K8S manual, "cpumanager").
        if Injection(self._settings.injection) is Injection.RUNTIME:
            return InjectionMethod.NODES
        if self._takes_cdi is None:
            version = kubelet_version(self._shared.api, self._settings.node_name)
            self._takes_cdi = (version.major, version.minor) >= _CDI_SINCE
        return InjectionMethod.CDI_NAMES if self._takes_cdi else InjectionMethod.NODES


def _doubtful(card: Card, failing: Problem) -> Card:
    """While cards cannot be looked at, none is given out, but what is held is not called sick."""
    return replace(card, problems=(*card.problems, Problem(TAINT_CHANGING, "", failing.text)))
