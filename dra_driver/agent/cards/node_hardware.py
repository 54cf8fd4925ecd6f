"""The node's hardware for an agent: its cards, and the tool that makes DRS instances on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.agent.events import EventReporter
from dra_driver.agent.settings import AgentSettings
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.locks import DrsLocks
from dra_driver.hardware.efsmi.runner import Efsmi
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.hardware.vendor_files import VendorMounts
from dra_driver.model.effects import Effects


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """One of each for the whole agent."""

    cards: CardCache
    silence: HungCardBreaker
    drs: Drs
    mounts: VendorMounts


def node_hardware(
    settings: AgentSettings,
    *,
    effects: Effects,
    measured: Callable[[str, str, float], None],
    event_reporter: EventReporter,
    changed: Callable[[], None],
) -> NodeHardware:
    """Has no effect yet: the cards are looked at from their `start` on. `measured` is told of
    each call of efsmi, `changed` is called when a card has changed."""
    sysfs = Sysfs(settings.host_root)
    tool, library = Path(settings.efsmi_path), settings.efsmi_library
    efsmi = Efsmi(
        tool,
        timeout=settings.efsmi_timeout,
        effects=effects,
        library=library,
        measured=measured,
    )
    cards = CardCache(
        Machine(sysfs, efsmi, error_limit=settings.error_limit),
        sysfs,
        presence_interval=settings.presence_interval,
        inventory_interval=settings.inventory_interval,
        changed=changed,
        card_events=CardEvents(event_reporter),
    )
    silence = HungCardBreaker()
    drs = Drs(
        efsmi,
        DrsLocks(settings.state_directory / "locks", patience=settings.efsmi_timeout),
        indexes=cards.index,
        silence=silence,
    )
    return NodeHardware(cards, silence, drs, VendorMounts(tool, library))
