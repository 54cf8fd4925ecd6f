"""The node's cards: sysfs and efsmi joined by full PCI address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dra_driver.hardware.efsmi import Efsmi
from dra_driver.hardware.listing import parse_list
from dra_driver.hardware.query import QueriedCard, parse_query
from dra_driver.hardware.summary import parse_summary
from dra_driver.hardware.sysfs import GcuFunction, Sysfs
from dra_driver.model import names
from dra_driver.model.card import Card, Problem, Virtualization
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress


@dataclass(frozen=True, slots=True)
class Inventory:
    """What one look at the machine found. `unusable` says, card by card, why a card that is on
    the bus cannot be published at all; it is empty on a machine in order."""

    cards: tuple[Card, ...]
    unusable: Mapping[PciAddress, str]


class Machine:
    """Looks at the hardware; holds no state, so that each answer is of now."""

    def __init__(self, sysfs: Sysfs, efsmi: Efsmi) -> None:
        self._sysfs = sysfs
        self._efsmi = efsmi

    def inventory(self) -> Inventory:
        """Every card of the node. Raises HardwareError when the machine cannot be read as a
        whole (driver not loaded, efsmi not there): that is not the same as no cards."""
        version = self._sysfs.driver_version()
        functions = self._sysfs.functions()
        if not functions:
            return Inventory((), {})
        queried = self._query()
        modes = parse_summary(self._efsmi.summary())
        switches = _shared_bridges(functions)
        cards: list[Card] = []
        unusable: dict[PciAddress, str] = {}
        for function in functions:
            try:
                found = queried.get(function.address)
                mode = modes.get(found.index) if found else None
                cards.append(
                    self._card(function, found, mode, version, switches.get(function.address))
                )
            except HardwareError as error:
                unusable[function.address] = str(error)
        return Inventory(tuple(cards), unusable)

    def card(self, card: Card) -> Card:
        """The same card with its minor and device nodes of now, without calling efsmi.

        Raises HardwareError when it is gone or the kernel driver no longer holds it.
        """
        minor = self._sysfs.minor(card.address)
        if minor is None:
            raise _not_taken(card.address)
        return replace(card, minor=minor, nodes=self._sysfs.nodes(minor))

    def _query(self) -> dict[PciAddress, QueriedCard]:
        """efsmi's cards by address; ``-L`` is asked only where ``-q`` prints no address."""
        queried = parse_query(self._efsmi.query())
        if any(card.address is None for card in queried):
            listed = {card.index: card for card in parse_list(self._efsmi.list_cards())}
            queried = tuple(
                replace(card, address=listed[card.index].address, uuid=listed[card.index].uuid)
                for card in queried
                if card.index in listed
            )
        by_address: dict[PciAddress, QueriedCard] = {}
        for card in queried:
            if card.address in by_address:
                raise HardwareError(f"`efsmi -q` prints PCI address {card.address} twice")
            if card.address is not None:
                by_address[card.address] = card
        return by_address

    def _card(
        self,
        function: GcuFunction,
        queried: QueriedCard | None,
        mode: Virtualization | None,
        driver_version: str,
        switch: str | None,
    ) -> Card:
        if function.minor is None:
            raise _not_taken(function.address)
        if queried is None:
            raise HardwareError(f"efsmi does not list card {function.address}")
        if mode is None:
            raise HardwareError(f"efsmi's summary does not show card {function.address}")
        if mode is Virtualization.SRIOV:
            raise HardwareError(
                f"card {function.address} is in SR-IOV mode, which this driver does not serve",
                remedy="switch SR-IOV off to use the card here",
            )
        if queried.model is None or queried.uuid is None or queried.memory_mib is None:
            raise HardwareError(
                f"`efsmi -q` does not tell name, uuid and memory of card {function.address}"
            )
        return Card(
            address=function.address,
            index=queried.index,
            minor=function.minor,
            model=queried.model,
            uuid=queried.uuid,
            serial=queried.serial or "",
            memory_mib=queried.memory_mib,
            driver_version=driver_version,
            ecc=queried.ecc,
            virtualization=mode,
            numa_node=function.numa_node,
            pcie_root=function.root,
            pcie_switch=switch,
            nodes=self._sysfs.nodes(function.minor),
            problems=_problems(queried, mode),
        )


def _not_taken(address: PciAddress) -> HardwareError:
    return HardwareError(
        f"the kernel driver has not taken card {address}",
        remedy="look at the kernel log for why its probe failed",
    )


def _problems(card: QueriedCard, mode: Virtualization) -> tuple[Problem, ...]:
    found: list[Problem] = []
    if mode is Virtualization.DRS:
        found.append(Problem(names.TAINT_FOREIGN, "", "somebody else switched DRS mode on"))
    if card.healthy is False:
        found.append(Problem(names.TAINT_UNHEALTHY, "health", "efsmi says Health : False"))
    if card.rma:
        found.append(Problem(names.TAINT_UNHEALTHY, "rma", "efsmi flags the card for return"))
    if card.ecc is not None and card.ecc.current != card.ecc.pending:
        found.append(Problem(names.TAINT_UNHEALTHY, "pending", "an ECC change waits for a reset"))
    return tuple(found)


def _shared_bridges(functions: Iterable[GcuFunction]) -> dict[PciAddress, str]:
    """For each card the nearest bridge above it that another card is also below."""
    functions = tuple(functions)
    below = Counter(bridge for function in functions for bridge in function.bridges)
    return {
        function.address: shared
        for function in functions
        for shared in [next((b for b in reversed(function.bridges) if below[b] > 1), None)]
        if shared is not None
    }
