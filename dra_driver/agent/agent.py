"""The agent: everything of the node side put together, in the order it must start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from dra_driver.agent.cards import Cards
from dra_driver.agent.ports import ApiReader
from dra_driver.agent.publisher import Publisher
from dra_driver.agent.reports import RECOVERY_FAILED, Reports
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.standing import Standing
from dra_driver.agent.startup import Startup
from dra_driver.hardware.efsmi import Efsmi
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.kube.api import Api
from dra_driver.kube.events import EventRecorder
from dra_driver.kubelet_api.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claim import Object
from dra_driver.model.device import whole_device
from dra_driver.model.effects import Effects
from dra_driver.model.names import ALLOCATOR_CONTROLLER, DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi import Injection
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.journal import Journal
from dra_driver.node.locks import Locks
from dra_driver.node.prepare import Preparer
from dra_driver.node.recovery import Recovery

_END = 10.0  # seconds to stop: for calls of the kubelet that run, and what they leave for the rest


class Agent:
    """Constructing it has no effect; `start` begins everything and returns at once.

    The order matters: recovery needs the cards to have been looked at, nothing is answered before
    recovery made journal, CDI files and cards agree, and nothing is published before claims can
    be prepared. Hardware that cannot be read holds nothing up: pods can end without it.
    """

    def __init__(self, settings: AgentSettings, api: Api, *, effects: Effects) -> None:
        state = settings.state_directory
        self._recorder = EventRecorder(
            api, controller=f"{DRIVER}/agent", instance=settings.pod_name or settings.node_name
        )
        self._reports = Reports(self._recorder, settings.node_name)
        sysfs = Sysfs(settings.host_root)
        efsmi = Efsmi(Path(settings.efsmi_path), timeout=settings.efsmi_timeout, effects=effects)
        self._publisher = Publisher(api, settings.node_name, devices=self._devices, held=self._held)
        self._cards = Cards(
            Machine(sysfs, efsmi),
            sysfs,
            presence_interval=settings.presence_interval,
            inventory_interval=settings.inventory_interval,
            changed=self._publisher.wake,
            reports=self._reports,
        )
        self._journal = Journal(state, effects=effects)
        self._cdi = CdiDirectory(settings.cdi_dir, effects=effects)
        self._locks = Locks(state / "locks")
        self._preparer = Preparer(
            claims=ApiReader(api),
            hardware=self._cards,
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
        self._startup = Startup(
            [self._cards.start, self._recover, self._plugin.start, self._publisher.start]
        )
        self._standing = Standing(self.ready, self._reports)

    def start(self) -> None:
        """Run the steps of the start until they succeed, in the background."""
        self._recorder.start()
        self._startup.start()
        self._standing.start()

    def stop(self) -> None:
        """Stop serving, within some ten seconds. Slices and prepared claims stay: the cards are
        still there."""
        end = time.monotonic() + _END

        def left() -> float:
            return max(0.0, end - time.monotonic())

        self._standing.stop(left())
        self._startup.stop(left())
        self._plugin.stop(left())
        self._cards.stop(left())
        self._publisher.stop(left())
        self._journal.close()
        self._recorder.stop(left())

    def ready(self) -> str | None:
        """Why the node does not serve GCUs right now, or None."""
        return (
            self._startup.problem
            or self._cards.problem
            or self._plugin.problem()
            or self._publisher.problem
        )

    def live(self) -> str | None:
        """Which thread ended, which only a fault of ours can cause."""
        alive = {
            "the start": self._startup.is_alive,
            "the look at the agent's own state": self._standing.is_alive,
        }
        if self._startup.done.is_set():
            alive |= {
                "the look at the cards": self._cards.is_alive,
                "the publisher": self._publisher.is_alive,
            }
        ended = [name for name, check in alive.items() if not check()]
        return f"{ended[0]} ended unexpectedly; see the log" if ended else None

    def _recover(self) -> None:
        opening = self._journal.open()
        report = Recovery(
            keeper=self._preparer.keeper, journal=self._journal, cdi=self._cdi, locks=self._locks
        ).run(opening)
        for uid, error in report.failed.items():
            self._reports.warning(RECOVERY_FAILED, f"claim with UID {uid}: {error}")

    def _devices(self) -> Sequence[Object] | None:
        cards = self._cards.latest
        if cards is None:
            return None
        return [whole_device(card, allocator=ALLOCATOR_CONTROLLER) for card in cards]

    def _held(self) -> frozenset[PciAddress]:
        holdings = self._journal.snapshot().claims.values()
        return frozenset(card for holding in holdings for card in holding.cards)
