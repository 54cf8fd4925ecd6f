"""What can be changed on a machine while it runs, validated like its description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from dra_driver.model.errors import InvalidValue
from dra_driver.simulator.boot import with_ecc
from dra_driver.simulator.description import load
from dra_driver.simulator.description.resolve import check_unique
from dra_driver.simulator.description.spec import (
    Command,
    CpuList,
    EccState,
    EfsmiSpec,
    ErrorKind,
    Spec,
    Watts,
    Word,
)
from dra_driver.simulator.state import MachineState


class CardChange(Spec):
    """Keys of a card that can change; those of the description, ``lost`` and ``eccCurrent``.

    The defaults here mean nothing: only the keys that are given are applied.
    """

    lost: bool = False
    efsmi_index: int = Field(alias="index", default=0, ge=0, le=63)
    minor: int = Field(default=0, ge=0, le=63)
    numa_node: int = Field(default=0, ge=-1)
    cpu_affinity: CpuList = ""
    uuid: Word = ""
    serial: Word = ""
    ecc_current: EccState = "Enable"
    ecc_pending: EccState = "Enable"
    virtualization: Literal["Disable", "SRIOV"] = "Disable"
    health: bool = True
    rma: bool = False
    errors: dict[ErrorKind, int] = Field(default_factory=dict)
    power_watts: Watts = None
    temperature: int = 0


class MachineChange(Spec):
    """Keys of the machine that can change; those of the description, and ``driverLoaded``."""

    driver_version: Word = ""
    driver_loaded: bool = True
    efsmi: EfsmiSpec = EfsmiSpec()
    placement: Literal["any", "aligned"] = "any"
    instance_ids: Literal["reused", "increasing"] = "reused"
    instances_survive_reboot: bool = False
    delays_ms: dict[Command, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)


def change_card(machine: MachineState, bdf: str, raw: Mapping[str, Any]) -> MachineState:
    """The machine with the keys of `raw` (named as in the description) set on one card.

    Raise InvalidValue for a wrong key or value, and GcuError when there is no such card.
    """
    card = machine.card(bdf)
    change = load.validated(CardChange, raw, of=f"card {card.bdf}")
    values = change.model_dump(exclude_unset=True)
    if card.instances and "virtualization" in values:
        raise InvalidValue(
            f"card {card.bdf}: virtualization: cannot change while it has DRS instances",
            remedy="destroy them first",
        )
    if "errors" in values:
        values["errors"] = {**card.errors, **values["errors"]}
    current = values.pop("ecc_current", card.ecc_current)
    pending = values.get("ecc_pending", card.ecc_pending)
    for ecc in (current, pending):
        if ecc not in card.forms:
            raise InvalidValue(
                f"card {card.bdf}: what a {card.model} is with ECC {ecc} is not known",
                remedy=f"known are {', '.join(card.forms)}",
            )
    changed = machine.with_card(with_ecc(card._replace(**values), current))
    check_unique(changed.cards)
    return changed


def change_machine(machine: MachineState, raw: Mapping[str, Any]) -> MachineState:
    """The machine with the keys of `raw` set. Raise InvalidValue for a wrong key or value."""
    change = load.validated(MachineChange, raw, of="the machine")
    values = change.model_dump(exclude_unset=True)
    if "efsmi" in values:
        tool = {
            ("json" if key == "json_output" else key): value
            for key, value in values["efsmi"].items()
        }
        values["efsmi"] = machine.efsmi._replace(**tool)
    if "delays_ms" in values:
        values["delays_ms"] = {**machine.delays_ms, **values["delays_ms"]}
    return machine._replace(**values)


def nested(assignments: Sequence[str]) -> dict[str, Any]:
    """``["efsmi.header=DEV"]`` as ``{"efsmi": {"header": "DEV"}}``. Raise InvalidValue for a word
    without ``=``."""
    result: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidValue(f"{assignment!r} is not KEY=VALUE")
        *folders, name = key.split(".")
        place = result
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return result
