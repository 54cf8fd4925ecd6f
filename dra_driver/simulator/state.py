"""What the simulated machine is at this moment, as it lies in ``state/state.json``.

Every value is immutable: an operation takes a `MachineState` and gives another one. They are named
tuples and not dataclasses, as each call of ``efsmi`` is a new process that reads this: importing
dataclasses and making these classes with it took 25 ms of a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dra_driver.model.errors import GcuError

FORMAT = 1


class ProfileRow(NamedTuple):
    """One row of a profile table. `size` is the ``<n>`` of ``<n>g.<m>gb``; `per_card` is how
    many of them an empty card holds."""

    id: int
    name: str
    size: int
    per_card: int
    memory_mib: int
    sips: int


class InstanceState(NamedTuple):
    """A DRS instance. `slots` are the units of size 1 that it occupies on the card."""

    id: int
    profile: str
    uuid: str
    slots: tuple[int, ...]


class Form(NamedTuple):
    """What a card is with one ECC state: its memory, and its profile table (empty without DRS).

    `assumed` says that the table is partly a guess.
    """

    memory_mib: int
    profiles: tuple[ProfileRow, ...] = ()
    table: str = ""
    assumed: bool = False

    @property
    def slots(self) -> int:
        """How many units of size 1 the card has."""
        return max((profile.size * profile.per_card for profile in self.profiles), default=0)


class CardState(NamedTuple):
    """One card. `bdf` is its PCI address as Linux writes it and never changes; `efsmi_bdf` is
    what efsmi prints (the domain may have eight digits there). `forms` is keyed by ECC state."""

    bdf: str
    efsmi_bdf: str
    pci_path: str
    efsmi_index: int
    minor: int
    model: str
    vendor_id: str
    device_id: str
    numa_node: int
    cpu_affinity: str
    uuid: str
    serial: str
    slot: str
    firmware: str
    ecc_current: str
    ecc_pending: str
    forms: Mapping[str, Form]
    reserved_mib: int
    drs: bool
    virtualization: str
    health: bool
    rma: bool
    errors: Mapping[str, int]
    power_watts: int | None
    power_cap_watts: int
    temperature: int
    video_nodes: int
    lost: bool = False
    instances: tuple[InstanceState, ...] = ()
    next_instance_id: int = 1

    @property
    def form(self) -> Form:
        return self.forms[self.ecc_current]


class EfsmiState(NamedTuple):
    """Which version of the tool answers; the fields are explained in `spec.EfsmiSpec`."""

    version: str
    header: str
    banner: bool
    json: bool
    json_units: bool
    keys: str
    instance_rows: bool
    vendor_in_name: bool
    temperature_unit: str
    rma_info: bool


class Fault(NamedTuple):
    """A fault that is switched on; `times` None means until it is cleared."""

    fault: str
    card: str | None = None
    command: str | None = None
    times: int | None = None
    seconds: float = 0.0
    exit_code: int = 1


class MachineState(NamedTuple):
    """The whole machine. `sequence` counts the changes of any of this, so that the record can
    be told to be complete."""

    driver_version: str
    driver_loaded: bool
    driver_directory: str
    efsmi: EfsmiState
    placement: str
    instance_ids: str
    instances_survive_reboot: bool
    delays_ms: Mapping[str, int]
    char_major: int
    char_devices: bool
    cards: tuple[CardState, ...]
    faults: tuple[Fault, ...] = ()
    boots: int = 1
    sequence: int = 0

    @property
    def present(self) -> tuple[CardState, ...]:
        """The cards that can be seen, in the order of their efsmi index."""
        if not self.driver_loaded:
            return ()
        return tuple(
            sorted((c for c in self.cards if not c.lost), key=lambda card: card.efsmi_index)
        )

    def card(self, bdf: str) -> CardState:
        """The card at `bdf`, lost or not. Raise GcuError when there never was one."""
        for card in self.cards:
            if bdf in {card.bdf, card.efsmi_bdf}:
                return card
        known = ", ".join(card.bdf for card in self.cards)
        raise GcuError(f"the machine has no card at {bdf}", remedy=f"its cards are {known}")

    def with_card(self, changed: CardState) -> MachineState:
        """The machine with `changed` in the place of the card with the same address."""
        cards = tuple(changed if card.bdf == changed.bdf else card for card in self.cards)
        return self._replace(cards=cards)


def to_json(value: Any) -> Any:
    """A named tuple and all in it as what the module json writes."""
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {name: to_json(getattr(value, name)) for name in value._fields}
        return [to_json(one) for one in value]
    if isinstance(value, Mapping):
        return {key: to_json(one) for key, one in value.items()}
    return value


def from_json(raw: dict[str, Any]) -> MachineState:
    """The inverse of `to_json` for a machine. Raise TypeError or KeyError for anything else."""
    return MachineState(
        **{
            **raw,
            "efsmi": EfsmiState(**raw["efsmi"]),
            "cards": tuple(_card(card) for card in raw["cards"]),
            "faults": tuple(Fault(**fault) for fault in raw["faults"]),
        }
    )


def _card(raw: dict[str, Any]) -> CardState:
    return CardState(
        **{
            **raw,
            "forms": {ecc: _form(form) for ecc, form in raw["forms"].items()},
            "instances": tuple(
                InstanceState(**{**instance, "slots": tuple(instance["slots"])})
                for instance in raw["instances"]
            ),
        }
    )


def _form(raw: dict[str, Any]) -> Form:
    return Form(**{**raw, "profiles": tuple(ProfileRow(**profile) for profile in raw["profiles"])})
