"""The agent: everything of the node side put together, in the order it must start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from dra_driver.agent.cards import Cards
from dra_driver.agent.publisher import Publisher, own_slices
from dra_driver.agent.settings import AgentSettings
from dra_driver.hardware.efsmi import Efsmi
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.kube.api import Api, Change
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.kube.watch import Reflector
from dra_driver.kubelet_api.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claim import Object
from dra_driver.model.device import whole_device
from dra_driver.model.effects import Effects
from dra_driver.model.names import ALLOCATOR_CONTROLLER
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi import Injection
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.journal import Journal
from dra_driver.node.locks import Locks
from dra_driver.node.prepare import Preparer
from dra_driver.node.recovery import Recovery

logger = logging.getLogger(__name__)

_GRACE = 10.0  # seconds for calls of the kubelet that run when we are told to stop


class Agent:
    """Constructing it has no effect; `start` recovers, serves, publishes, in this order."""

    def __init__(self, settings: AgentSettings, api: Api, *, effects: Effects) -> None:
        state = settings.state_directory
        sysfs = Sysfs(settings.host_root)
        efsmi = Efsmi(Path(settings.efsmi_path), timeout=settings.efsmi_timeout, effects=effects)
        self.publisher = Publisher(
            api,
            settings.node_name,
            devices=self._devices,
            held=self._held,
            report=logger.debug,
        )
        self.cards = Cards(
            Machine(sysfs, efsmi),
            sysfs,
            presence_interval=settings.presence_interval,
            inventory_interval=settings.inventory_interval,
            changed=self.publisher.wake,
            report=logger.debug,
        )
        self._slices = Reflector(
            api,
            RESOURCE_SLICES,
            _OwnSlices(self.publisher),
            field_selector=own_slices(settings.node_name),
        )
        self._journal = Journal(state, effects=effects)
        self._cdi = CdiDirectory(settings.cdi_dir, effects=effects)
        self._locks = Locks(state / "locks")
        self._preparer = Preparer(
            claims=_Reader(api),
            hardware=self.cards,
            journal=self._journal,
            cdi=self._cdi,
            locks=self._locks,
            node_name=settings.node_name,
            injection=Injection(settings.injection),
        )
        self._plugin = KubeletPlugin(
            self._preparer,
            Sockets.of(settings.kubelet_root, settings.pod_uid),
            silence=settings.registration_timeout,
            effects=effects,
        )

    def start(self) -> None:
        """Raises JournalError, CdiError or SocketError where the node's folders are unusable."""
        self.cards.look()
        report = Recovery(
            keeper=self._preparer.keeper, journal=self._journal, cdi=self._cdi, locks=self._locks
        ).run(self._journal.open())
        for uid, outcome in report.settled.items():
            logger.info("recovery of claim %s: %s", uid, outcome)
        for uid, error in report.failed.items():
            logger.warning("recovery of claim %s failed: %s", uid, error)
        self._plugin.start()
        self.publisher.start()
        self._slices.start()
        self.cards.start()

    def stop(self) -> None:
        """Stop serving. Slices and prepared claims stay: the cards are still there."""
        self._plugin.stop(grace=_GRACE)
        self.cards.stop()
        self._slices.stop()
        self.publisher.stop()
        self._journal.close()

    def ready(self) -> str | None:
        """Why the node does not serve GCUs right now, or None."""
        return self.cards.problem or self._plugin.problem() or self.publisher.problem

    def _devices(self) -> Sequence[Object] | None:
        cards = self.cards.latest
        if cards is None:
            return None
        return [whole_device(card, allocator=ALLOCATOR_CONTROLLER) for card in cards]

    def _held(self) -> frozenset[PciAddress]:
        holdings = self._journal.snapshot().claims.values()
        return frozenset(card for holding in holdings for card in holding.cards)


class _OwnSlices:
    """Tells the publisher when a slice of ours is not as it was written."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def on_replace(self, items: Sequence[Object]) -> None:
        del items  # whatever they are, the publisher compares them all
        self._publisher.wake()

    def on_event(self, change: Change, obj: Object) -> None:
        spec = None if change is Change.DELETED else obj["spec"]
        self._publisher.slice_changed(obj["metadata"]["name"], spec)


class _Reader:
    """The node room's reading of the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get_claim(self, namespace: str, name: str) -> Object:
        return self._api.get(RESOURCE_CLAIMS, name, namespace=namespace)

    def get_pod(self, namespace: str, name: str) -> Object:
        return self._api.get(PODS, name, namespace=namespace)
