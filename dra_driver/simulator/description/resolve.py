"""From a description to the machine's first state: defaults filled in, rules across keys held."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, TypeVar

from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.simulator.commands import drs
from dra_driver.simulator.description.catalog import Model, catalog
from dra_driver.simulator.description.spec import CardSpec, FaultSpec, MachineSpec, ProfileTableSpec
from dra_driver.simulator.state import CardState, EfsmiState, Fault, Form, MachineState, ProfileRow

_Value = TypeVar("_Value")
# Keys of a card that no two share, and the fields of the state that hold them.
_UNIQUE: Final = {
    "bdf": "bdf",
    "index": "efsmi_index",
    "minor": "minor",
    "uuid": "uuid",
    "serial": "serial",
}


def first_state(spec: MachineSpec, *, identity: str = "") -> MachineState:
    """The machine as it is made. `identity` (the name of a node, say) makes the uuids and serials
    that the description leaves out differ between machines of one description.

    Raise InvalidValue, naming the path of the key at fault.
    """
    known = catalog()
    tables = {**known.profile_tables, **spec.profile_tables}
    cards = tuple(
        _Resolver(f"cards[{at}]", card, known.models.get(card.model), tables, identity).card(at)
        for at, card in enumerate(spec.cards)
    )
    check_unique(cards)
    machine = MachineState(
        driver_version=spec.driver_version,
        driver_loaded=True,
        driver_directory=spec.driver_directory,
        efsmi=EfsmiState(
            **{("json" if key == "json_output" else key): value for key, value in spec.efsmi}
        ),
        placement=spec.placement,
        instance_ids=spec.instance_ids,
        instances_survive_reboot=spec.instances_survive_reboot,
        delays_ms=dict(spec.delays_ms),
        char_major=spec.char_major,
        char_devices=False,  # `SimulatedMachine.create` finds out whether it may make them
        cards=cards,
    )
    machine = _with_instances(machine, spec)
    known_faults = []
    for at, fault in enumerate(spec.faults):
        try:
            known_faults.append(fault_state(machine, fault))
        except GcuError as error:
            raise InvalidValue(f"faults[{at}].card: {error.what}", remedy=error.remedy) from error
    return machine._replace(faults=tuple(known_faults))


def linux_address(bdf: str) -> str:
    """The address as sysfs writes it: four digits of domain, more only where it needs them."""
    domain, rest = bdf.split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


def fault_state(machine: MachineState, spec: FaultSpec) -> Fault:
    """A fault as the machine keeps it. Raise GcuError when its card does not exist."""
    return Fault(
        fault=spec.fault,
        card=None if spec.card is None else machine.card(spec.card).bdf,
        command=spec.command,
        times=spec.times,
        seconds=spec.hang_seconds,
        exit_code=spec.exit_code,
    )


def check_unique(cards: tuple[CardState, ...]) -> None:
    """Raise InvalidValue when two cards share what only one can have."""
    for name, field in _UNIQUE.items():
        seen: dict[object, int] = {}
        for at, card in enumerate(cards):
            value = getattr(card, field)
            if value in seen:
                raise InvalidValue(
                    f"cards[{at}].{name}: {value} is also the {name} of cards[{seen[value]}]"
                )
            seen[value] = at
    for at, card in enumerate(cards):
        for other in cards:
            if f"/{other.bdf}" in f"{card.pci_path}/":
                raise InvalidValue(f"cards[{at}].pciPath: {other.bdf} is a card, not a bridge")


class _Resolver:
    """One card of the description, `model` None where the catalog does not know it."""

    def __init__(
        self,
        path: str,
        spec: CardSpec,
        model: Model | None,
        tables: Mapping[str, ProfileTableSpec],
        identity: str,
    ) -> None:
        self._path = path
        self._spec = spec
        self._model = model
        self._tables = tables
        digest = sha256(f"{identity}/{spec.bdf}".encode()).hexdigest()
        self._digits = str(int(digest, 16) % 10**8).rjust(8, "0")

    def card(self, at: int) -> CardState:
        spec, model = self._spec, self._model
        vendor, device = self._needed("pciId", spec.pci_id, model.pci_id if model else None).split(
            ":"
        )
        return CardState(
            bdf=linux_address(spec.bdf),
            efsmi_bdf=spec.bdf,
            pci_path=spec.pci_path,
            efsmi_index=at if spec.index is None else spec.index,
            minor=at if spec.minor is None else spec.minor,
            model=spec.model,
            vendor_id=vendor,
            device_id=device,
            numa_node=spec.numa_node,
            cpu_affinity=spec.cpu_affinity,
            uuid=spec.uuid or f"TPUA{self._digits}",
            serial=spec.serial or f"A1B2C{self._digits}",
            slot=spec.slot,
            firmware=spec.firmware,
            ecc_current=spec.ecc,
            ecc_pending=spec.ecc_pending or spec.ecc,
            forms=self._forms(),
            reserved_mib=spec.reserved_mib,
            drs=self._drs(),
            virtualization=spec.virtualization,
            health=spec.health,
            rma=spec.rma,
            errors=dict(spec.errors),
            power_watts=spec.power_watts,
            power_cap_watts=self._needed(
                "powerCapWatts", spec.power_cap_watts, model.power_cap_watts if model else None
            ),
            temperature=spec.temperature,
            video_nodes=spec.video_nodes,
        )

    def _drs(self) -> bool:
        if self._spec.drs is not None:
            return self._spec.drs
        return self._model.drs if self._model else self._spec.profile_table is not None

    def _forms(self) -> dict[str, Form]:
        """What the model is with each ECC state; memory and table of the description override
        those of the ECC state that the card starts with."""
        spec = self._spec
        forms: dict[str, Form] = {}
        if self._model:
            for ecc, known in self._model.ecc.items():
                forms[ecc] = self._form(known.memory_mib, known.profile_table)
        base = forms.get("Disable" if spec.ecc == "N/A" else spec.ecc)
        memory = self._needed("memoryMiB", spec.memory_mib, base.memory_mib if base else None)
        forms[spec.ecc] = self._form(memory, spec.profile_table or (base.table if base else None))
        if self._drs() and not forms[spec.ecc].profiles:
            raise InvalidValue(f"{self._path}.profileTable: must be given for a card with DRS")
        if (spec.ecc_pending or spec.ecc) not in forms:
            raise InvalidValue(
                f"{self._path}.eccPending: what a {spec.model} is with ECC {spec.ecc_pending} "
                "is not known"
            )
        return forms

    def _form(self, memory_mib: int, table: str | None) -> Form:
        if not table or not self._drs():
            return Form(memory_mib)
        if table not in self._tables:
            raise InvalidValue(
                f"{self._path}.profileTable: there is no table {table}",
                remedy=f"take one of {', '.join(self._tables)}, or add it to profileTables",
            )
        found = self._tables[table]
        profiles = tuple(
            ProfileRow(
                row.id, row.name, int(row.name.split("g")[0]), row.count, row.memory_mib, row.sips
            )
            for row in found.profiles
        )
        return Form(memory_mib, profiles, table, found.assumed)

    def _needed(self, key: str, given: _Value | None, known: _Value | None) -> _Value:
        value = known if given is None else given
        if value is None:
            raise InvalidValue(
                f"{self._path}.{key}: must be given for model {self._spec.model}",
                remedy=f"or take one of the models that are known: {', '.join(catalog().models)}",
            )
        return value


def _with_instances(machine: MachineState, spec: MachineSpec) -> MachineState:
    for at, described in enumerate(spec.cards):
        if not described.instances:
            continue
        card = machine.cards[at]
        for number, wanted in enumerate(described.instances):
            path = f"cards[{at}].instances[{number}]"
            try:
                card = _with_instance(machine, drs.switch_on(card), wanted.profile, wanted.uuid)
            except GcuError as error:
                raise InvalidValue(f"{path}: {error.what}") from error
        machine = machine.with_card(card)
    return machine


def _with_instance(
    machine: MachineState, card: CardState, profile: str, uuid: str | None
) -> CardState:
    ids = {row.name: row.id for row in card.form.profiles}
    if profile not in ids:
        raise GcuError(f"there is no profile {profile}, only {', '.join(ids)}")
    card, made = drs.create(
        card, ids[profile], placement=machine.placement, ids=machine.instance_ids
    )
    if uuid is None:
        return card
    named = tuple(one._replace(uuid=uuid) if one.id == made.id else one for one in card.instances)
    return card._replace(instances=named)
