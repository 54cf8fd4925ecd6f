"""Builds what the agent needs of the hardware: the cards, and efsmi for DRS instances."""

from __future__ import annotations

from pathlib import Path

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.agent.events import EventReporter
from dra_driver.agent.metrics import AgentMetrics
from dra_driver.agent.settings import AgentSettings
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.locks import DrsLocks
from dra_driver.hardware.efsmi.runner import Efsmi
from dra_driver.hardware.known_nodes import KnownNodes
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.hardware.vendor_files import VendorMounts
from dra_driver.model.effects import Effects
from dra_driver.util.hooks import OnChange


def node_hardware(
    settings: AgentSettings,
    *,
    effects: Effects,
    metrics: AgentMetrics,
    event_reporter: EventReporter,
    on_change: OnChange,
) -> tuple[CardCache, Drs, VendorMounts]:
    """One of each for the whole agent. Has no effect: `CardCache.start` is the first to read the
    hardware. `on_change` is called when a card has changed."""
    sysfs = Sysfs(settings.host_root)
    tool, library = Path(settings.efsmi_path), settings.efsmi_library
    efsmi = Efsmi(
        tool,
        timeout=settings.efsmi_timeout,
        effects=effects,
        library=library,
        measured=metrics.efsmi_call,
    )
    breaker = HungCardBreaker(settings.efsmi_timeout)
    cards = CardCache(
        Machine(
            sysfs,
            efsmi,
            error_limit=settings.error_limit,
            known_nodes=KnownNodes(settings.state_directory),
        ),
        sysfs,
        presence_interval=settings.presence_interval,
        inventory_interval=settings.inventory_interval,
        breaker=breaker,
        on_change=on_change,
        card_events=CardEvents(event_reporter, simulated=settings.host_root != Path("/")),
    )
    drs = Drs(
        efsmi,
        DrsLocks(settings.state_directory / "locks", patience=settings.efsmi_timeout),
        indexes=cards.index,
        breaker=breaker,
    )
    return cards, drs, VendorMounts(tool, library)
