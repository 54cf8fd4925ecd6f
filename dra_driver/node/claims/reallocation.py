"""A claim that was released and allocated anew before the kubelet had it unprepared here. Pure.

A pod that is deleted by force frees its claim while its node is down. A kubelet that starts then
knows the claim by its UID, asks for it for the next pod, and never has it unprepared in between. It
also keeps the CDI names of the former devices, and tells them to the runtime beside the new ones
(1.36.3, ``cm/dra/claiminfo.go``, ``addDevice``); a runtime that cannot resolve one of them makes no
container. So the former names stand for the new devices until the kubelet forgets the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dra_driver.model.claim import ClaimRef, results
from dra_driver.model.owner import Owner
from dra_driver.node.checkpoint.ledger import PreparedClaim, State
from dra_driver.node.checkpoint.records import PreparedDevice

Holds = tuple[PreparedDevice, ...]


def is_renewed(claim: Mapping[str, Any], held: PreparedClaim) -> bool:
    """Whether `claim`, as it is on the API server, has another allocation than is `held`. One of
    another UID is another claim, and says nothing of this one."""
    if ClaimRef.of(claim) != held.owner:
        return False
    allocated = [(each.main_request, each.device, each.share_id) for each in results(claim)]
    return sorted(allocated, key=str) != sorted(map(_key, held.devices), key=str)


def is_in_force(owner: Owner, held: PreparedClaim, wanted: Holds) -> bool:
    """Whether the owner is prepared with what it asks for."""
    if held.state is not State.PREPARE_COMPLETED:
        return False
    # A grant is its devices.
    return not isinstance(owner, ClaimRef) or set(map(_key, held.devices)) == set(map(_key, wanted))


def renewing(held: PreparedClaim) -> PreparedClaim:
    """What is held, on record as known to the kubelet by its names."""
    holds = tuple(replace(hold, cdi_aliases=_names(held, hold)) for hold in held.devices)
    return replace(held, devices=holds)


def renewed(held: PreparedClaim, wanted: Holds) -> Holds:
    """What is `wanted` instead of what is held, with the names that the kubelet knows besides."""
    own = {hold.name for hold in wanted}
    former: dict[str, list[str]] = {}
    for hold in held.devices:
        former.setdefault(hold.request, []).extend(_names(held, hold))
    taken: set[str] = set(own)
    named = []
    for hold in wanted:
        names = tuple(name for name in former.get(hold.request, ()) if name not in taken)
        taken |= set(names)
        named.append(replace(hold, cdi_aliases=tuple(dict.fromkeys(names))))
    return tuple(named)


def spent(holds: Iterable[PreparedDevice]) -> Holds:
    """Nothing but the names: all was given back, or never made, and the kubelet asks again."""
    return tuple(
        replace(hold, instance=None, instances_before=None, admin_access=True) for hold in holds
    )


def keeps_names(holds: Iterable[PreparedDevice]) -> bool:
    """Whether the kubelet knows names that none of its own is."""
    return any(hold.cdi_aliases for hold in holds)


def has_same_names(one: Iterable[PreparedDevice], other: Iterable[PreparedDevice]) -> bool:
    """Whether both are the same devices to the kubelet."""
    return {hold.name for hold in one} == {hold.name for hold in other}


def is_spent(held: PreparedClaim) -> bool:
    """Whether names are all that is left on record."""
    return held.state is State.UNPREPARE_STARTED and not held.cards and keeps_names(held.devices)


def _names(held: PreparedClaim, hold: PreparedDevice) -> tuple[str, ...]:
    """What was never answered has no name that the kubelet knows, but the former ones."""
    own = () if held.state is State.PREPARE_STARTED or is_spent(held) else (hold.name,)
    return tuple(dict.fromkeys((*hold.cdi_aliases, *own)))


def _key(hold: PreparedDevice) -> tuple[str, str, str | None]:
    return hold.request, hold.device, hold.share_id
