"""``efsmi -i N --drs --list-profile`` and ``--list-instance``.

Nobody outside has seen the borders and headers of these two; the fields of a row, and their
order, are those that vendor code reads.
"""

from __future__ import annotations

from dra_driver.simulator.commands import drs
from dra_driver.simulator.commands.layout.banner import banner
from dra_driver.simulator.state import CardState, EfsmiState


def profile_list(tool: EfsmiState, card: CardState) -> str:
    """Index, name, profile id, how many an empty card holds, memory, SIPs. Raise DrsRefused unless
    the card is in DRS mode."""
    rows = [
        f"| {card.efsmi_index}      {profile.name.ljust(11)}{profile.id}      {profile.per_card}  "
        f"{f'{profile.memory_mib}MiB'.rjust(11)}{str(profile.sips).rjust(6)}  |"
        for profile in drs.profiles(card)
    ]
    return banner(shown=tool.banner) + _lines(rows)


def instance_list(tool: EfsmiState, card: CardState) -> str:
    """Index, name, profile id, instance id, placement as ``<first slot>:<size>`` (assumed)."""
    ids = {profile.name: profile.id for profile in card.form.profiles}
    rows = [
        f"| {card.efsmi_index}      {instance.profile.ljust(11)}{ids[instance.profile]}      "
        f"{instance.id}      {instance.slots[0]}:{len(instance.slots)}  |"
        for instance in card.instances
    ]
    return banner(shown=tool.banner) + _lines(rows)


def _lines(rows: list[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
