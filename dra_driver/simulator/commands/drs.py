"""DRS inside one card: which profiles fit, where an instance lies, what it is called.

Placement and the reuse of ids are not public, so both are settings of the machine.
"""

from __future__ import annotations

import os

from dra_driver.model.errors import GcuError
from dra_driver.simulator.state import CardState, InstanceState, ProfileRow


class DrsRefused(GcuError):
    """The card refuses what was asked of its DRS mode."""


def switch_on(card: CardState) -> CardState:
    """The card in DRS mode; the same card when it was already."""
    if not card.drs:
        raise DrsRefused(f"GCU {card.efsmi_index} does not support DRS")
    if card.virtualization == "SRIOV":
        raise DrsRefused(f"GCU {card.efsmi_index} is in SRIOV mode")
    return card._replace(virtualization="DRS")


def switch_off(card: CardState) -> CardState:
    """The card out of DRS mode; the same card when it was already."""
    if card.instances:
        raise DrsRefused(f"GCU {card.efsmi_index} still has {len(card.instances)} DRS instances")
    if card.virtualization != "DRS":
        return card
    return card._replace(virtualization="Disable")


def profiles(card: CardState) -> tuple[ProfileRow, ...]:
    """The card's profiles. Raise DrsRefused unless it is in DRS mode."""
    if card.virtualization != "DRS":
        raise DrsRefused(f"DRS of GCU {card.efsmi_index} is off")
    return card.form.profiles


def create(
    card: CardState, profile_id: int, *, placement: str, ids: str
) -> tuple[CardState, InstanceState]:
    """The card with one instance more, and that instance.

    Raise DrsRefused when DRS is off, there is no such profile, or no room for it.
    """
    found = [profile for profile in profiles(card) if profile.id == profile_id]
    if not found:
        raise DrsRefused(f"GCU {card.efsmi_index} has no profile {profile_id}")
    slots = place(found[0].size, taken(card), card.form.slots, placement)
    if slots is None:
        raise DrsRefused(f"GCU {card.efsmi_index} has no room for {found[0].name}")
    instance = InstanceState(_free_id(card, ids), found[0].name, new_uuid(), slots)
    instances = tuple(sorted((*card.instances, instance), key=lambda one: one.id))
    next_id = max(card.next_instance_id, instance.id + 1)
    return card._replace(instances=instances, next_instance_id=next_id), instance


def destroy(card: CardState, instance_id: int) -> CardState:
    """The card without that instance. Raise DrsRefused when it has none with that id."""
    left = tuple(instance for instance in card.instances if instance.id != instance_id)
    if len(left) == len(card.instances):
        raise DrsRefused(f"GCU {card.efsmi_index} has no instance {instance_id}")
    return card._replace(instances=left)


def taken(card: CardState) -> frozenset[int]:
    """The slots of the card that instances occupy."""
    return frozenset(slot for instance in card.instances for slot in instance.slots)


def place(size: int, occupied: frozenset[int], total: int, rule: str) -> tuple[int, ...] | None:
    """The slots for an instance of `size` on a card of `total`, None where there is no room.

    ``any``: it fits whenever enough slots are free, adjacent or not. ``aligned``: it needs
    adjacent ones that start at a multiple of its size.
    """
    if rule == "any":
        free = [slot for slot in range(total) if slot not in occupied]
        return tuple(free[:size]) if len(free) >= size else None
    for start in range(0, total - size + 1, size):
        slots = range(start, start + size)
        if occupied.isdisjoint(slots):
            return tuple(slots)
    return None


def new_uuid() -> str:
    """A random RFC 4122 uuid (version 4), without the import time of the module uuid."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _free_id(card: CardState, rule: str) -> int:
    # A real S60 was seen with its first instance as number 1.
    if rule == "increasing":
        return card.next_instance_id
    used = {instance.id for instance in card.instances}
    return next(number for number in range(1, len(used) + 2) if number not in used)
