"""A claim that was released and allocated again before the kubelet had it unprepared here. Pure.

If a pod is deleted by force while its node is down, its claim is freed. A kubelet that starts
afterwards knows the claim by its UID, has it prepared for the next pod, and never has it unprepared
in between. It remembers the CDI names of the earlier allocation, and passes them to the runtime
with the new ones (1.36.3, ``cm/dra/claiminfo.go``, ``addDevice``). If the runtime cannot resolve
one of them, it creates no container. So the earlier names become aliases of the new devices until
the kubelet forgets the claim. They are recorded when the devices are released, because the next
prepare may fail: the claim is `ClaimStep.RELEASED` then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dra_driver.model.claims.claim import ClaimRef, results
from dra_driver.model.claims.owner import Owner
from dra_driver.node.checkpoint.ledger import PreparedClaim
from dra_driver.node.checkpoint.records import CdiNames, ClaimStep, PreparedDevice, PreparedDevices


def is_reallocated(claim: Mapping[str, Any], held: PreparedClaim) -> bool:
    """Whether `claim`, as the API server has it, has another allocation than `held`. A claim with
    another UID is another claim: False."""
    if (claim.get("metadata") or {}).get("uid") != held.owner.uid:
        return False
    allocated = [(each.main_request, each.device, each.share_id) for each in results(claim)]
    return sorted(allocated, key=str) != sorted(map(_key, held.devices), key=str)


def is_prepared_with(owner: Owner, held: PreparedClaim, wanted: PreparedDevices) -> bool:
    if held.state is not ClaimStep.PREPARE_COMPLETED:
        return False
    # The UID of a container's allocation is made of its devices.
    return not isinstance(owner, ClaimRef) or set(map(_key, held.devices)) == set(map(_key, wanted))


def with_known_names(held: PreparedClaim) -> PreparedClaim:
    """The claim with all names that the kubelet knows as aliases: those of an answer, too."""
    if held.state is ClaimStep.PREPARE_STARTED:  # it was never answered
        return held
    devices = []
    for device in held.devices:
        names = dict.fromkeys((*device.cdi_aliases, device.cdi_name))
        devices.append(replace(device, cdi_aliases=tuple(names)))
    return replace(held, devices=tuple(devices))


def aliases(devices: Iterable[PreparedDevice]) -> CdiNames:
    """The aliases of the devices of each request; without requests that have none."""
    found: dict[str, tuple[str, ...]] = {}
    for device in devices:
        if device.cdi_aliases:
            found[device.request] = (*found.get(device.request, ()), *device.cdi_aliases)
    return found


def with_aliases(earlier: CdiNames, wanted: PreparedDevices) -> PreparedDevices:
    """The `wanted` devices; the `earlier` names of each request become aliases of its devices."""
    taken = {device.cdi_name for device in wanted}
    named = []
    for device in wanted:
        names = tuple(
            dict.fromkeys(name for name in earlier.get(device.request, ()) if name not in taken)
        )
        taken |= set(names)
        named.append(replace(device, cdi_aliases=names))
    return tuple(named)


def _key(device: PreparedDevice) -> tuple[str, str, str | None]:
    return device.request, device.device_name, device.share_id
