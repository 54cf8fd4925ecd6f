"""The node's cards: sysfs and efsmi joined by full PCI address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from dra_driver.hardware.efsmi.join import EfsmiUnclear, Survey, mode_of
from dra_driver.hardware.efsmi.query import QueriedCard
from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.hardware.efsmi.survey import Surveyor
from dra_driver.hardware.known_nodes import KnownNodes
from dra_driver.hardware.sysfs import GcuFunction, Sysfs
from dra_driver.model import names
from dra_driver.model.card import Card, Problem, Virtualization
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

SILENT: Final = (EfsmiHung, EfsmiFailed)

_PATIENCE: Final = 0.25
"""If the call for all cards has not ended after this part of its time limit, each card is also
asked by itself."""


class HardwareScan(msgspec.Struct, frozen=True):
    """What one look at the machine found. `failures` says why other cards that sysfs or efsmi knows
    cannot be published. These may be well: those for which efsmi's output is not understood
    (EfsmiUnclear), and those for which it gave no answer although it did for others (`SILENT`)."""

    cards: tuple[Card, ...]
    failures: Mapping[PciAddress, HardwareError] = msgspec.field(default_factory=dict)


class Machine:
    """Looks at the hardware; each answer is of now. A card with more error records than
    `error_limit` has a problem; without a limit, none for that. `known_nodes` says which device
    nodes a card should have."""

    def __init__(
        self, sysfs: Sysfs, efsmi: Efsmi, *, known_nodes: KnownNodes, error_limit: int | None = None
    ) -> None:
        self._sysfs = sysfs
        self._error_limit = error_limit
        self._known_nodes = known_nodes
        self._surveyor = Surveyor(efsmi, patience=efsmi.timeout * _PATIENCE)

    def inventory(self) -> HardwareScan:
        """Every card of the node. Raises HardwareError when the machine cannot be read as a
        whole (driver not loaded, efsmi not there): that is not the same as no cards."""
        functions = self._sysfs.functions()
        version = self._sysfs.driver_version()
        if version is None and all(function.minor is None for function in functions):
            raise HardwareError(
                "the GCU kernel driver is not loaded",
                remedy="install or load the vendor's driver; the agent looks again by itself",
            )
        if not functions:
            return HardwareScan(())
        survey = self._surveyor.survey([function.address for function in functions])
        cards: list[Card] = []
        failures = _not_on_the_bus(survey, functions)
        for function in functions:
            try:
                if function.minor is None:
                    raise _not_taken(function.address)
                found = survey.card(function.address)
                rows = survey.rows
                mode = mode_of(function.address, found.index, rows) if rows else None
                cards.append(self._card(function, found, mode, version))
            except HardwareError as error:
                failures[function.address] = error
        self._known_nodes.learn(cards)
        return HardwareScan(tuple(map(self._with_missing_nodes, cards)), failures)

    def card(self, card: Card) -> Card:
        """The same card with its minor and device nodes of now, without calling efsmi. Raises
        HardwareError when it is gone or the kernel driver no longer holds it."""
        minor = self._sysfs.minor(card.address, card.minor)
        if minor is None:
            raise _not_taken(card.address)
        now = replace(card, minor=minor, nodes=self._sysfs.nodes(minor))
        return self._with_missing_nodes(now)

    def _with_missing_nodes(self, card: Card) -> Card:
        return replace(card, missing_nodes=self._known_nodes.missing(card))

    def _card(
        self,
        function: GcuFunction,
        queried: QueriedCard,
        mode: Virtualization | None,
        driver_version: str | None,
    ) -> Card:
        if mode is Virtualization.SRIOV:
            raise HardwareError(
                f"card {function.address} is in SR-IOV mode, which this driver does not serve",
                remedy="switch SR-IOV off to use the card here",
            )
        if queried.model is None or queried.uuid is None or queried.memory_mib is None:
            doubts = "".join(f"; {doubt}" for doubt in queried.unclear)
            raise EfsmiUnclear(
                f"`efsmi -q` does not tell name, uuid and memory of card {function.address} "
                f"(index {queried.index}){doubts}"
            )
        assert function.minor is not None
        return Card(
            address=function.address,
            index=queried.index,
            minor=function.minor,
            model=queried.model,
            uuid=queried.uuid,
            memory_mib=queried.memory_mib,
            driver_version=driver_version or queried.driver_version or "",
            ecc=queried.ecc,
            virtualization=mode,
            numa_node=function.numa_node,
            pcie_root=function.root,
            pcie_bridges=function.bridges,
            nodes=self._sysfs.nodes(function.minor),
            problems=_problems(queried, self._error_limit),
            errors=queried.errors,
            readings=queried.readings,
        )


def _not_on_the_bus(
    survey: Survey, functions: Iterable[GcuFunction]
) -> dict[PciAddress, HardwareError]:
    there = {function.address for function in functions}
    return {
        address: HardwareError(f"efsmi lists card {address}, but it is not on the PCI bus")
        for address in sorted({*survey.cards, *survey.failures} - there)
    }


def _not_taken(address: PciAddress) -> HardwareError:
    return HardwareError(
        f"the kernel driver is not bound to card {address}",
        remedy="look at the kernel log for why its probe failed",
    )


def _problems(card: QueriedCard, error_limit: int | None) -> tuple[Problem, ...]:
    found: list[Problem] = []
    if card.healthy is False:
        found.append(Problem(names.TAINT_UNHEALTHY, "health", "efsmi says Health : False"))
    if card.rma:
        found.append(Problem(names.TAINT_UNHEALTHY, "rma", "efsmi flags the card for return"))
    if card.ecc is not None and card.ecc.current != card.ecc.pending:
        found.append(Problem(names.TAINT_UNHEALTHY, "pending", "an ECC change waits for a reset"))
    if card.errors is not None and error_limit is not None and card.errors > error_limit:
        text = f"efsmi counts {card.errors} error records, and {error_limit} are the limit"
        found.append(Problem(names.TAINT_UNHEALTHY, "errors", text))
    if card.unclear:
        text = f"efsmi says what is not understood: {'; '.join(card.unclear)}"
        found.append(Problem(names.TAINT_UNHEALTHY, "efsmi", text))
    return tuple(found)
