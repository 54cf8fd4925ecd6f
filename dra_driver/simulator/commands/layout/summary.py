"""Plain ``efsmi``: a two-line cell for each card, and a table of all DRS instances."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from dra_driver.simulator.commands.layout.banner import banner
from dra_driver.simulator.state import CardState, EfsmiState

_WIDTH: Final = 76
_RULE: Final = f"|{'-' * _WIDTH}|"
_INSTANCE_RULE: Final = f"+{'-' * 34}+{'-' * 28}+{'-' * 13}+"


def summary(tool: EfsmiState, driver_version: str, cards: Sequence[CardState], now: float) -> str:
    """The whole page; `now` is in seconds since the epoch, printed in local time."""
    lines = [
        f"+{time.strftime('%Y-%m-%d, %H:%M:%S %Z', time.localtime(now)).ljust(_WIDTH, '-')}+",
        f"| {f'EFSMI    {tool.version}'.ljust(25)}Driver Ver: {driver_version}".ljust(_WIDTH + 1)
        + "|",
        _RULE,
        _RULE,
        "| DEV    NAME                 | FW VER           | BUS-ID      ECC           |",
        "| TEMP   Dpm   Pwr(Usage/Cap) | Mem     GCU Virt | DUsed       SN            |",
    ]
    for card in cards:
        lines += [_RULE, *_card(tool, card)]
    lines.append(f"+{'-' * _WIDTH}+")
    if any(card.instances for card in cards):
        lines += _instances(cards)
    return banner(shown=tool.banner) + "\n".join(lines) + "\n"


def _card(tool: EfsmiState, card: CardState) -> tuple[str, str]:
    name = f"Enflame {card.model}" if tool.vendor_in_name else card.model
    unit = tool.temperature_unit if tool.temperature_unit == "℃" else f" {tool.temperature_unit}"
    load = "N/A" if card.power_watts is None else f"{card.power_watts}W"
    heat = f"{card.temperature}{unit}".ljust(7) + "Sleep"
    power = f"{load} / {card.power_cap_watts}W"
    memory = f"{card.form.memory_mib}MiB".ljust(9)
    # The domain loses its upper digits here: two cards can look alike in this table.
    bus = card.efsmi_bdf.partition(":")[0][-2:] + card.efsmi_bdf[card.efsmi_bdf.index(":") :]
    return (
        _cells(
            f"{card.efsmi_index}".ljust(7) + name, card.firmware, bus.ljust(12) + card.ecc_current
        ),
        _cells(
            heat + power.rjust(27 - len(heat)),
            memory + card.virtualization,
            "0%".ljust(12) + card.serial,
        ),
    )


def _cells(first: str, second: str, third: str) -> str:
    return f"| {first.ljust(27)} | {second.ljust(16)} | {third.ljust(25)} |"


def _instances(cards: Sequence[CardState]) -> Iterator[str]:
    yield f"+{'-' * 77}+"
    yield f"| {'GCU instances:'.ljust(76)}|"
    yield f"|{'-' * 34}+{'-' * 28}+{'-' * 13}|"
    yield "| GCU        Name           ID     | Mem (Usage/Total)          | SIP         |"
    yield _INSTANCE_RULE
    for card in cards:
        rows = {profile.name: profile for profile in card.form.profiles}
        for instance in card.instances:
            profile = rows[instance.profile]
            name = f" {card.efsmi_index}".ljust(11) + instance.profile.ljust(15) + f"{instance.id}"
            memory = f"    0MiB / {f'{profile.memory_mib}MiB'.rjust(8)}"
            yield f"| {name.ljust(33)}| {memory.ljust(27)}| {str(profile.sips).ljust(12)}|"
    yield _INSTANCE_RULE
