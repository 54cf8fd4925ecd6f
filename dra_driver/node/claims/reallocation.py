"""A claim that was released and allocated again before the kubelet had it unprepared here. Pure.

If a pod is deleted by force while its node is down, its claim is freed. A kubelet that starts
afterwards knows the claim by its UID, has it prepared for the next pod, and never has it unprepared
in between. It remembers the CDI names of the earlier allocation, and passes them to the runtime
with the new ones (1.36.3, ``cm/dra/claiminfo.go``, ``addDevice``). If the runtime cannot resolve
one of them, it creates no container. So the earlier names become aliases of the new devices until
the kubelet forgets the claim. They are recorded when the devices are released, because the next
prepare may fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dra_driver.model.claims.claim import ClaimRef, results
from dra_driver.model.claims.owner import Owner
from dra_driver.node.checkpoint.ledger import ClaimState, PreparedClaim
from dra_driver.node.checkpoint.records import PreparedDevice, PreparedDevices


def is_reallocated(claim: Mapping[str, Any], held: PreparedClaim) -> bool:
    """Whether `claim`, as the API server has it, has another allocation than `held`. A claim with
    another UID is another claim: False."""
    if (claim.get("metadata") or {}).get("uid") != held.owner.uid:
        return False
    allocated = [(each.main_request, each.device, each.share_id) for each in results(claim)]
    return sorted(allocated, key=str) != sorted(map(_key, held.devices), key=str)


def is_prepared_with(owner: Owner, held: PreparedClaim, wanted: PreparedDevices) -> bool:
    """Whether the owner is prepared with the `wanted` devices."""
    if held.state is not ClaimState.PREPARE_COMPLETED:
        return False
    # The UID of a container's allocation is made of its devices.
    return not isinstance(owner, ClaimRef) or set(map(_key, held.devices)) == set(map(_key, wanted))


def with_own_names_as_aliases(held: PreparedClaim) -> PreparedClaim:
    """The claim with all names that the kubelet knows as aliases, for its record while it is
    released."""
    devices = tuple(replace(each, cdi_aliases=_known_names(held, each)) for each in held.devices)
    return replace(held, devices=devices)


def with_aliases(held: PreparedClaim, wanted: PreparedDevices) -> PreparedDevices:
    """The `wanted` devices; the names of each request of `held` become aliases of its devices."""
    earlier: dict[str, list[str]] = {}
    for device in held.devices:
        earlier.setdefault(device.request, []).extend(_known_names(held, device))
    taken = {device.cdi_name for device in wanted}
    named = []
    for device in wanted:
        names = tuple(
            dict.fromkeys(name for name in earlier.get(device.request, ()) if name not in taken)
        )
        taken |= set(names)
        named.append(replace(device, cdi_aliases=names))
    return tuple(named)


def without_devices(devices: Iterable[PreparedDevice]) -> PreparedDevices:
    """The devices for the record of a released claim, when only its names remain: administrative
    access uses no device."""
    return tuple(
        replace(device, instance=None, instances_before=None, admin_access=True)
        for device in devices
    )


def has_aliases(devices: Iterable[PreparedDevice]) -> bool:
    """Whether any device has CDI names of an earlier allocation."""
    return any(device.cdi_aliases for device in devices)


def has_same_names(one: Iterable[PreparedDevice], other: Iterable[PreparedDevice]) -> bool:
    """Whether both have the same CDI names."""
    return {device.cdi_name for device in one} == {device.cdi_name for device in other}


def has_only_aliases(held: PreparedClaim) -> bool:
    """Whether the claim was released, and only its names are still recorded."""
    return (
        held.state is ClaimState.UNPREPARE_STARTED and not held.cards and has_aliases(held.devices)
    )


def _known_names(held: PreparedClaim, device: PreparedDevice) -> tuple[str, ...]:
    """The names that the kubelet knows: of a device that was in an answer, and all aliases."""
    is_answered = held.state is not ClaimState.PREPARE_STARTED and not has_only_aliases(held)
    own = (device.cdi_name,) if is_answered else ()
    return tuple(dict.fromkeys((*device.cdi_aliases, *own)))


def _key(device: PreparedDevice) -> tuple[str, str, str | None]:
    return device.request, device.device_name, device.share_id
