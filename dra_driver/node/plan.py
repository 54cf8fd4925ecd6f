"""The devices of an allocated claim on this node, or the reason for a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from msgspec.structs import replace

from dra_driver.config.device_config import read_config
from dra_driver.model.claims.claim import (
    ClaimRef,
    Result,
    allocation,
    made_for,
    pod_claim_name,
    results,
)
from dra_driver.model.devices.device import is_admin_device
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_WHOLE, DRIVER
from dra_driver.node.asked_amounts import ShareOf, amount_objections, asked_for
from dra_driver.node.checkpoint.records import MetadataRef, PreparedDevice


def planned_devices(
    claim: Mapping[str, Any], ref: ClaimRef, *, pool: str, share: ShareOf
) -> tuple[PreparedDevice, ...]:
    """The claim's devices here, in the order of its results; `visible_cards` is still empty.

    `claim` is the API object, `ref` the kubelet's reference to it, `pool` this node's pool.
    `share` is called for devices whose amount is asked for by memory or compute. Raises Refused
    with the reason, InvalidValue for a device name that this driver does not publish or for invalid
    configuration, and what `share` raises.
    """
    _check_identity(claim, ref)
    found = allocation(claim)
    if found is None:
        raise Refused(
            f"claim {ref} is not allocated", remedy="wait until a device is allocated to it"
        )
    ours = results(claim)
    if not ours:
        raise Refused(f"claim {ref} was allocated nothing of {DRIVER}")
    for entry in found.get("devices", {}).get("config", ()):
        read_config(entry, _owner(entry, ref))  # no mistake goes unnoticed, used here or not
    pod = made_for(claim)
    devices = []
    for result in ours:
        device, asked = PreparedDevice.of(result), asked_for(claim, result, ref)
        problems = chain(
            _objections(device, result, pool),
            amount_objections(claim, result, device, ref, share, asked=asked),
        )
        _refuse_first(problems, result, ref)
        metadata = None
        if asked.device_metadata:
            metadata = MetadataRef(result.request, pod_claim_name(claim))
        devices.append(replace(device, made_for=pod, metadata=metadata))
    _check_names(devices, ref)
    return tuple(devices)


def _check_identity(claim: Mapping[str, Any], ref: ClaimRef) -> None:
    actual = ClaimRef.of(claim)
    if actual.uid != ref.uid:
        raise Refused(
            f"claim {ref} with UID {ref.uid} is gone; a claim of the same name has UID "
            f"{actual.uid}",
            remedy="delete the pod that was made for the former claim",
        )


def _owner(entry: Mapping[str, Any], ref: ClaimRef) -> str:
    return (
        f"the DeviceClass of claim {ref}" if entry.get("source") == "FromClass" else f"claim {ref}"
    )


def _check_names(devices: Iterable[PreparedDevice], ref: ClaimRef) -> None:
    """Without share IDs a request can have one share of a device: the CDI name has the request."""
    seen: set[str] = set()
    for device in devices:
        if device.mode is not Mode.WHOLE and device.share_id is None and device.cdi_name in seen:
            raise Refused(
                f"claim {ref} was allocated device {device.device_name} twice for request "
                f"{device.request!r}, without share IDs",
                remedy=ref.renewal,
            )
        seen.add(device.cdi_name)


def _refuse_first(problems: Iterable[tuple[str, str]], result: Result, ref: ClaimRef) -> None:
    for problem, remedy in problems:
        raise Refused(
            f"claim {ref}, request {result.request!r}, device {result.device}: {problem}",
            remedy=remedy,
        )


def _objections(device: PreparedDevice, result: Result, pool: str) -> Iterator[tuple[str, str]]:
    if result.pool != pool:
        yield f"it is in pool {result.pool}, and this node has {pool}", "run the pod there"
    if is_admin_device(result.device) and not result.admin_access:
        yield (
            "it is for adminAccess alone, as others use the card meanwhile",
            f"request the DeviceClass {CLASS_WHOLE}, or adminAccess",
        )
    if result.admin_access and device.mode is not Mode.WHOLE:
        yield (
            f"adminAccess is for whole cards, and this is a {device.mode} device",
            "request a whole card, or drop adminAccess",
        )
    if device.mode is not Mode.WHOLE and device.amount is None:
        yield (
            "the allocation does not say how much of the device was granted",
            "delete the claim; before Kubernetes 1.36 gcu-dra-controller alone can allocate it",
        )
