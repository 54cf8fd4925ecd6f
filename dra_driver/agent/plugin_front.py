"""The agent's front for clusters without DRA: the device plugin, for this node's kubelet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.shared import Shared
from dra_driver.agent.way import kubelet_version
from dra_driver.config.card_rules import Offer
from dra_driver.device_plugin.granter import Handover
from dra_driver.device_plugin.plugin import DevicePlugin
from dra_driver.device_plugin.stock import NodeView
from dra_driver.model.card import Card, Problem
from dra_driver.model.names import TAINT_CHANGING
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi import Injection

# From 1.29 on kubelets take CDI names from device plugins without a feature gate (KEP-4009).
_CDI_SINCE: Final = (1, 29)
_NOTHING: Final = Offer(modes=frozenset())


class PluginFront:
    """Constructing it has no effect. Where it is not `offering`, as new pods are served by DRA, it
    serves the containers that hold something until they end.

    `serve` may be called again and does nothing then. `changed` is called when something was
    given out or released.
    """

    def __init__(
        self,
        settings: AgentSettings,
        shared: Shared,
        *,
        offering: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._shared = shared
        self._offering = offering
        self._takes_cdi: bool | None = None
        self._plugin = DevicePlugin(
            view=self._view,
            keeper=shared.preparer.keeper,
            hardware=shared.cards,
            handover=self._handover,
            changed=changed,
            node_name=settings.node_name,
            kubelet_root=settings.kubelet_root,
            pod_uid=settings.pod_uid,
            effects=shared.effects,
        )
        self._serves = False

    def serve(self) -> None:
        """Answer the kubelet; raises SocketError."""
        if not self._serves:
            self._plugin.start()
            self._serves = True

    def withdraw(self, grace: float) -> None:
        """Take no call any more, and let running ones end within `grace` seconds."""
        if self._serves:
            self._plugin.stop(grace)

    def wake(self) -> None:
        """A card has changed, or what is held of one."""
        if self._serves:
            self._plugin.tell()

    @property
    def problem(self) -> str | None:
        """Why devices are not served right now, or None; also while nobody asked to."""
        return self._plugin.problem() if self._serves else None

    def checks(self) -> Mapping[str, Callable[[], bool]]:
        """Whether each thread that was started lives."""
        return {"the watch over the device plugin": self._plugin.is_alive} if self._serves else {}

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
        )

    def _offer(self, card: PciAddress) -> Offer:
        offers = self._shared.offers
        return offers.of(card) if offers.known else _NOTHING

    def _handover(self) -> Handover:
        """Raises KubeError while it is not known which kubelet this is."""
        if Injection(self._settings.injection) is Injection.RUNTIME:
            return Handover.VARIABLES
        if self._takes_cdi is None:
            version = kubelet_version(self._shared.api, self._settings.node_name)
            self._takes_cdi = (version.major, version.minor) >= _CDI_SINCE
        return Handover.CDI_NAMES if self._takes_cdi else Handover.NODES


def _doubtful(card: Card, failing: Problem) -> Card:
    """While cards cannot be looked at, none is given out, but what is held is not called sick."""
    return replace(card, problems=(*card.problems, Problem(TAINT_CHANGING, "", failing.text)))
