"""What each command of ``efsmi`` does to the machine and answers, faults included. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from dra_driver.model.errors import GcuError
from dra_driver.simulator import faults
from dra_driver.simulator.commands import drs
from dra_driver.simulator.commands.command import ParsedCall, UsageError
from dra_driver.simulator.commands.layout.cards import card_list
from dra_driver.simulator.commands.layout.drs import instance_list, profile_list
from dra_driver.simulator.commands.layout.query import query_json, query_text
from dra_driver.simulator.commands.layout.summary import summary
from dra_driver.simulator.state import CardState, Fault, MachineState

GARBAGE: Final = b"\x1b[2J\x00\xff\xfe|| ..: \xe2\x84 0x7f GCU -- : : |\n\xc3\x28 {{{ \n"

# Faults that refuse the command before it does anything.
_REFUSING: Final = (
    faults.EFSMI_EXIT,
    faults.CREATE_FAILS,
    faults.DESTROY_FAILS,
    faults.DRS_ON_REFUSED,
    faults.DRS_OFF_REFUSED,
)


class Effect(NamedTuple):
    """The machine after a call, what the call prints, and what the record says about it."""

    machine: MachineState
    outcome: str
    out: bytes = b""
    error: str = ""
    exit_code: int = 0


def card_of(machine: MachineState, command: ParsedCall) -> CardState | None:
    """The card that the command names by its index, None where it names none.

    Raise GcuError when no card that can be seen has that index.
    """
    if command.card_index is None:
        return None
    for card in machine.present:
        if card.efsmi_index == command.card_index:
            return card
    raise GcuError(f"GCU {command.card_index} is not found")


def perform(
    machine: MachineState, command: ParsedCall, met: Mapping[str, Fault], now: float
) -> Effect:
    """The effect of the call when it meets the faults `met`, at `now` (seconds since the epoch).

    A refusal is an effect too: the machine unchanged, an error and an exit code.
    """
    for name in _REFUSING:
        if name in met:
            text = f"injected fault {name}"
            return Effect(machine, text, error=text, exit_code=met[name].exit_code)
    try:
        effect = _perform(machine, command, lying=faults.CREATE_LIES_SUCCESS in met, now=now)
    except UsageError:
        raise
    except GcuError as error:
        return Effect(machine, str(error), error=str(error), exit_code=1)
    if (lie := met.get(faults.CREATE_LIES_FAILURE)) is not None:
        text = f"injected fault {lie.fault}"
        effect = effect._replace(out=b"", error=text, exit_code=lie.exit_code)
    if faults.EFSMI_GARBAGE in met:
        effect = effect._replace(out=GARBAGE)
    return effect


def _perform(machine: MachineState, command: ParsedCall, *, lying: bool, now: float) -> Effect:
    if not machine.driver_loaded:
        raise GcuError("the enflame kernel driver is not loaded")
    card = card_of(machine, command)
    if card is None or command.name in {"list", "query"}:
        text = _read(machine, command, card, now)
        return Effect(machine, "printed", text.encode())
    if command.name == "list-profile":
        return Effect(machine, "printed", profile_list(machine.efsmi, card).encode())
    if command.name == "list-instance":
        return Effect(machine, "printed", instance_list(machine.efsmi, card).encode())
    if lying:
        return Effect(machine, f"injected fault {faults.CREATE_LIES_SUCCESS}", b"Done\n")
    changed, outcome = _change(machine, command, card)
    return Effect(machine.with_card(changed), outcome, b"Done\n")


def _read(machine: MachineState, command: ParsedCall, card: CardState | None, now: float) -> str:
    tool, version = machine.efsmi, machine.driver_version
    cards = machine.present if card is None else (card,)
    if command.name == "list":
        return card_list(tool, cards, instances=card is not None)
    if command.name == "summary":
        return summary(tool, version, cards, now)
    if not command.json:
        return query_text(tool, version, cards)
    if not tool.json:
        raise UsageError("unknown arguments: --json-format")
    return query_json(tool, version, cards)


def _change(machine: MachineState, command: ParsedCall, card: CardState) -> tuple[CardState, str]:
    match command.name:
        case "drs-on":
            return drs.switch_on(card), "DRS is on"
        case "drs-off":
            return drs.switch_off(card), "DRS is off"
        case "create-instance":
            changed, made = drs.create(
                card, command.number, placement=machine.placement, ids=machine.instance_ids
            )
            return changed, f"created instance {made.id} ({made.profile}, {made.uuid})"
        case _:
            return drs.destroy(card, command.number), f"destroyed instance {command.number}"
