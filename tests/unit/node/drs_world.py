"""A node whose cards are the simulator's, in memory: all three modes, and every fault of efsmi."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from dra_driver.agent.slices.device_layout import slice_total
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card, DeviceNode, Ecc, Problem, Virtualization
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.devices.device import device_name
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError, HardwareError
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.device_ops import SliceCount
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.node.recovery.profile_prober import ProfileProber
from dra_driver.node.recovery.reconciler import Findings, NodeReconciler
from tests.unit.memory_efsmi import MemoryEfsmi
from tests.unit.node.world import CARDS, SLICES, Agent, World, card, claim, result


def tool(cards: int = 2, **keys: Any) -> MemoryEfsmi:
    return MemoryEfsmi.of(*map(str, CARDS[:cards]), **keys)


@dataclass
class SimulatedCards:
    """Plays the agent's view of the cards; `problems` are those that it has found, `modes_told`
    whether it knows their modes, `missing_nodes` those that all cards had before, `unread` cards
    that efsmi has not described since the agent's start."""

    tool: MemoryEfsmi
    problems: dict[PciAddress, tuple[Problem, ...]] = field(default_factory=dict)
    modes_told: bool = True
    missing_nodes: tuple[str, ...] = ()
    unread: Collection[PciAddress] = ()

    def is_on_bus(self, address: PciAddress) -> bool:
        return not self.tool.card(str(address)).lost

    def card(self, address: PciAddress) -> Card:
        state = self.tool.card(str(address))
        if state.lost or address in self.unread:
            raise HardwareError(f"card {address} is lost")
        return replace(
            card(address, state.minor),
            index=state.efsmi_index,
            model=state.model,
            driver_version="1.5",
            uuid=state.uuid,
            memory_mib=state.form.memory_mib,
            ecc=Ecc(state.ecc_current == "Enable", state.ecc_pending == "Enable"),
            virtualization=Virtualization(state.virtualization) if self.modes_told else None,
            numa_node=None,
            nodes=(DeviceNode(f"/dev/gcu{state.minor}", f"/dev/gcu{state.minor}"),),
            problems=self.problems.get(address, ()),
            missing_nodes=self.missing_nodes,
        )

    def all(self) -> list[Card]:
        """The cards that can be seen."""
        found = sorted(PciAddress.parse(state.bdf) for state in self.tool.machine.present)
        return [self.card(address) for address in found]


@dataclass
class DrsWorld(World):
    """`now` is the clock, `indexes` what the agent knows of cards at its start. Cards are cut into
    `slices` by the rule, and into `published` as it is known to the API server."""

    tool: MemoryEfsmi = field(default_factory=tool)
    now: float = 0.0
    slices: int = SLICES
    published: int | None = None
    indexes: Callable[[PciAddress], int | None] = lambda _: None
    breaker: HungCardBreaker = field(default_factory=lambda: HungCardBreaker(0))

    def __post_init__(self) -> None:
        self.cards = SimulatedCards(self.tool)

    def hardware(self) -> SimulatedCards:
        return self.cards

    def drs_card(self, journal: Journal, effects: Effects) -> DrsCard:
        self.tool.effects = effects
        locks = self.root / "state" / "locks"
        self.drs = Drs(self.tool, locks, indexes=self.indexes, breaker=self.breaker)
        self.tables = ProfileTables(self.root / "state", effects=effects)
        return DrsCard(self.drs, self.tables, journal.snapshot)

    def slice_count(self, journal: Journal) -> SliceCount:
        return lambda card: slice_total(
            journal.snapshot(), card, published=self.published, rule=self.slices
        )

    def reconcile(self, agent: Agent, **keys: Any) -> Findings:
        reconciler = NodeReconciler(
            claim_manager=agent.preparer.claim_manager,
            journal=agent.journal,
            locks=agent.locks,
            drs=self.drs,
        )
        return reconciler.run(self.cards.all(), **keys)

    def profile_prober(self, agent: Agent) -> ProfileProber:
        return ProfileProber(
            drs=self.drs,
            tables=self.tables,
            journal=agent.journal,
            locks=agent.locks,
            clock=lambda: self.now,
        )

    def reboot(self) -> None:
        """The tmpfs is empty afterwards, and the instances gone unless the machine keeps them."""
        if (self.root / "cdi").exists():
            super().reboot()
        self.tool.reboot()


def share(
    card: int, mode: Mode, amount: int, share_id: str, request: str = "gcu"
) -> dict[str, Any]:
    """An allocation result: `amount` slices, or an instance of that size, of a card."""
    capacity = "slices" if mode is Mode.SHARED else "size"
    return result(
        device_name(mode, CARDS[card]),
        request,
        shareID=share_id,
        consumedCapacity={capacity: str(amount)},
    )


def slices(name: str, card: int, amount: int) -> dict[str, Any]:
    """A claim for slices of a card."""
    return claim(name, share(card, Mode.SHARED, amount, f"share-{name}"))


def instance(name: str, card: int, size: int) -> dict[str, Any]:
    """A claim for a DRS instance of a card."""
    return claim(name, share(card, Mode.DRS, size, f"share-{name}"))


def whole(name: str, card: int) -> dict[str, Any]:
    """A claim for a card."""
    return claim(name, result(card))


def overseer(name: str, card: int) -> dict[str, Any]:
    """A claim with administrative access to a card."""
    return claim(name, result(card, adminAccess=True))


def errors(agent: Agent, *refs: ClaimRef) -> list[str]:
    """Prepare each claim by itself; the error of each, empty for success."""
    answers = [agent.preparer.prepare([ref])[ref.uid] for ref in refs]
    return [str(answer) if isinstance(answer, GcuError) else "" for answer in answers]


def edits(world: DrsWorld, name: str) -> list[dict[str, Any]]:
    """What the CDI file of claim `name` does to a container, by device."""
    content = world.files()[f"gcu.enflame.com-claim-uid-{name}.json"]
    return [device["containerEdits"] for device in json.loads(content)["devices"]]
