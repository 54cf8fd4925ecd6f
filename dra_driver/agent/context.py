"""What both front ends of the agent share: the node's cards, and the journal of prepared claims."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.agent.events import EventReporter
from dra_driver.agent.lifecycle.serving_mode import ServingState
from dra_driver.agent.metrics import AgentMetrics
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.device_layout import slice_count, slice_total
from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.config.card_rules import load_card_rules
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.hardware.efsmi.runner import Efsmi
from dra_driver.hardware.known_nodes import KnownNodes
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.hardware.vendor_files import VendorMounts
from dra_driver.kube.api import Api
from dra_driver.kube.events import EventRecorder
from dra_driver.kubelet_api.pod_resources import PodResources
from dra_driver.kubelet_api.sockets import Folders
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from dra_driver.node.cdi.directory import CdiDirectory, MetadataDirectory
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.locks import Locks
from dra_driver.node.preparer import Preparer
from dra_driver.util.hooks import ChangeHook

_KUBELET_PATIENCE: Final = 10.0  # seconds for the kubelet's list of containers


class AgentContext:
    """One of each for the whole agent, built bottom-up. Has no effect: `CardCache.start` is the
    first to read the hardware. `on_change` is called when claims or containers were given devices,
    or gave them back, `on_cards` when a card has changed."""

    def __init__(
        self, settings: AgentSettings, api: Api, *, effects: Effects, registry: CollectorRegistry
    ) -> None:
        state = settings.state_directory
        self.api = api
        self.effects = effects

        # What other parts report to.
        self.metrics = AgentMetrics(registry)
        self.on_change, self.on_cards = ChangeHook(), ChangeHook()
        self.recorder = EventRecorder(
            api, controller=f"{DRIVER}/agent", instance=settings.pod_name or settings.node_name
        )
        self.event_reporter = EventReporter(self.recorder, settings.node_name)

        # The cards, and what is known of them.
        self.mounts = VendorMounts(Path(settings.efsmi_path), settings.efsmi_library)
        self.cards, self.drs = self._hardware(settings)
        self.card_configs = CardConfigSource(
            api, settings.node_name, load_card_rules(settings.card_rules), on_change=self.on_change
        )
        self.tables = ProfileTables(state, effects=effects)
        self.published = SliceCache()

        # Prepared claims: the journal, the CDI files, the locks.
        self.journal = Journal(state, effects=effects, on_damaged=self._on_damaged_journal)
        self.cdi = CdiDirectory(settings.cdi_dir, effects=effects)
        self.locks = Locks(state / "locks")
        self.failures = DeviceCircuitBreaker(on_tripped=self.event_reporter.device_failing)
        self.preparer = Preparer(
            api=api,
            claim_manager=self._claim_manager(settings),
            journal=self.journal,
            locks=self.locks,
            node_name=settings.node_name,
            on_prepared=self.metrics.on_prepared,
        )
        self.folders = Folders.of(settings.kubelet_root, settings.pod_uid)
        self.kubelet = PodResources(self.folders.pod_resources, _KUBELET_PATIENCE)
        self.serving = ServingState(api, settings.node_name, settings.mode)

    def _hardware(self, settings: AgentSettings) -> tuple[CardCache, Drs]:
        sysfs = Sysfs(settings.host_root)
        efsmi = Efsmi(
            Path(settings.efsmi_path),
            timeout=settings.efsmi_timeout,
            effects=self.effects,
            library=settings.efsmi_library,
            measured=self.metrics.efsmi_call,
        )
        breaker = HungCardBreaker(settings.efsmi_timeout)
        known_nodes = KnownNodes(settings.state_directory)
        cards = CardCache(
            Machine(sysfs, efsmi, error_limit=settings.error_limit, known_nodes=known_nodes),
            sysfs,
            presence_interval=settings.presence_interval,
            inventory_interval=settings.inventory_interval,
            breaker=breaker,
            on_change=self.on_cards,
            card_events=CardEvents(self.event_reporter, simulated=settings.host_root != Path("/")),
        )
        locks = settings.state_directory / "locks"
        return cards, Drs(efsmi, locks, indexes=cards.index, breaker=breaker)

    def _claim_manager(self, settings: AgentSettings) -> PreparedClaimManager:
        metadata = settings.kubelet_root / "plugins" / DRIVER / "dra-device-metadata"
        return PreparedClaimManager(
            hardware=self.cards,
            journal=self.journal,
            cdi=self.cdi,
            metadata=MetadataDirectory(metadata, effects=self.effects),
            locks=self.locks,
            injection=Injection(settings.injection),
            drs=DrsCard(self.drs, self.tables, self.journal.snapshot),
            slice_count=lambda card: slice_total(
                self.journal.snapshot(),
                card,
                published=slice_count(self.published.devices, card),
                rule=self.card_configs.of(card).slice_count,
            ),
            failures=self.failures,
            on_recreated=self.event_reporter.instance_recreated,
        )

    def _on_damaged_journal(self, damaged: Path) -> None:
        self.metrics.journal_quarantined()
        self.event_reporter.journal_damaged(damaged)
