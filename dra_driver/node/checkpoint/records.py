"""The records of the journal, as JSON. Unknown fields are preserved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import msgspec

from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.claim import ClaimRef, Result
from dra_driver.model.claims.owner import ContainerAllocation, Orphan, Owner
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.model.identifiers import check_id
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.quantity import parse_quantity


class ClaimStep(StrEnum):
    """The steps of a claim on the node, each written before the effects that follow it.

    ``intent`` and ``unpreparing`` account for every change of a card that may have happened;
    ``prepared`` and ``forgotten`` say that all changes have. ``released`` has no device, only the
    CDI names that the kubelet knows (`dra_driver.node.claims.reallocation`).
    """

    PREPARE_STARTED = "intent"
    PREPARE_COMPLETED = "prepared"
    UNPREPARE_STARTED = "unpreparing"
    RELEASED = "released"
    FORGOTTEN = "forgotten"


class CardRecordKind(StrEnum):
    """Records of cards: the driver switched DRS mode on, or off.

    A claim's record with a DRS device also means that it is on; this one is for a card without
    claims.
    """

    DRS_ON = "drs-on"
    DRS_OFF = "drs-off"


class MetadataRef(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """By what a container finds the metadata of a device: the request as the claim's results have
    it, with a subrequest, and the pod's name of a claim that was made from a template; empty
    otherwise. Raises InvalidValue for names that cannot be part of a path."""

    request: str
    pod_claim: str = ""

    def __post_init__(self) -> None:
        check_id(self.request.partition("/")[0], "request")
        if self.pod_claim:
            check_id(self.pod_claim, "name of a pod's claim")


_IN_RECORD: Final = {
    "device_name": "device",
    "share_id": "shareID",
    "consumed": "consumedCapacity",
    "visible_cards": "sees",
    "instances_before": "before",
    "admin_access": "adminAccess",
    "cdi_aliases": "formerly",
    "made_for": "madeFor",
}


class PreparedDevice(msgspec.Struct, frozen=True, omit_defaults=True, rename=_IN_RECORD):
    """One device of an owner.

    ``device_name`` is the device's name in the ResourceSlice. ``visible_cards`` are the cards
    that a container with this device sees: those of its usage set, with its own.
    ``consumed`` maps a capacity to a quantity, for a shared device. ``share_id`` is set for a
    shared device from Kubernetes 1.36 on, but not for the device plugin. ``instance`` is the DRS
    instance of the device; until it exists, ``instances_before`` are those that the card had
    before the create. With ``admin_access`` a container sees the card without using it up.
    ``cdi_aliases`` are CDI names of an earlier allocation
    (`dra_driver.node.claims.reallocation`). ``made_for`` is the UID of the pod for which the
    claim was made from a template; empty where pods can share it. ``total`` is the number of
    slices of the card by which the owner's slices were counted. ``metadata`` is set where the
    container gets a file with the device's attributes (`dra_driver.node.cdi.metadata`).
    """

    request: str
    pool: str
    device_name: str
    share_id: str | None = None
    consumed: dict[str, str] = {}
    visible_cards: tuple[PciAddress, ...] = ()
    instance: Instance | None = None
    instances_before: tuple[Instance, ...] | None = None
    admin_access: bool = False
    cdi_aliases: tuple[str, ...] = ()
    made_for: str = ""
    total: int | None = None
    metadata: MetadataRef | None = None

    @classmethod
    def of(cls, result: Result) -> PreparedDevice:
        """The device of an allocation result; raises InvalidValue for a name that this driver does
        not publish."""
        parse_device_name(result.device)
        if result.share_id is not None:
            check_id(result.share_id, "share ID")
        return cls(
            request=result.main_request,
            pool=result.pool,
            device_name=result.device,
            share_id=result.share_id,
            consumed=dict(result.consumed),
            admin_access=result.admin_access,
        )

    @property
    def mode(self) -> Mode:
        """The mode of the card while it is used by this device."""
        return parse_device_name(self.device_name)[0]

    @property
    def card(self) -> PciAddress:
        return parse_device_name(self.device_name)[1]

    @property
    def cdi_name(self) -> str:
        """The device with its share, which no other device of the owner has. If the API server
        drops share IDs, the name has the claim's request instead."""
        if self.share_id is not None:
            return f"{self.device_name}-{self.share_id}"
        if self.consumed and self.request not in RESOURCES.values():
            return f"{self.device_name}-{self.request}"
        return self.device_name

    @property
    def amount(self) -> int | None:
        """The number of slices, or the DRS size. None for the whole card, and if the record has no
        whole number: then it counts as the whole capacity."""
        text = self.consumed.get(CAPACITY_OF_MODE.get(self.mode, ""))
        return None if text is None else _amount(text)


PreparedDevices = tuple[PreparedDevice, ...]


CdiNames = Mapping[str, tuple[str, ...]]
"""CDI names by the claim's request."""


class Record(msgspec.Struct, frozen=True):
    """One record. ``kind`` is a `ClaimStep`, a `CardRecordKind`, or the kind that a newer version
    wrote; ``raw`` is the JSON object with all fields."""

    kind: str
    owner: Owner | None
    devices: PreparedDevices
    raw: Mapping[str, Any]
    card: PciAddress | None = None
    names: CdiNames = {}


# A node has a few dozen amounts, and each prepare reads those of all claims.
@lru_cache(maxsize=1024)
def _amount(text: str) -> int | None:
    try:
        value = parse_quantity(text)
    except InvalidValue:
        return None
    return int(value) if value >= 1 and value == int(value) else None


def record(
    kind: ClaimStep, owner: Owner, devices: PreparedDevices, names: CdiNames | None = None
) -> Record:
    """A new record. Every kind has all that is known, so that one record is enough if others are
    damaged. `names` are what stays of an owner whose devices are released."""
    left = {request: list(every) for request, every in (names or {}).items()}
    raw = {
        "kind": kind.value,
        **_owner_out(owner),
        "holds": [_device_out(device) for device in devices],
        **({"names": left} if left else {}),
    }
    return Record(kind, owner, devices, raw, names=names or {})


def card_record(kind: CardRecordKind, card: PciAddress) -> Record:
    return Record(kind, None, (), {"kind": kind.value, "card": str(card)}, card)


def encode(raw: Mapping[str, Any]) -> bytes:
    """The JSON object as compact ASCII."""
    return json.dumps(raw, separators=(",", ":"), sort_keys=True).encode("ascii")


def decode(payload: bytes) -> Record:
    """Read what `encode` wrote, in this version or another.

    Raises InvalidValue for what is no JSON object.
    """
    try:
        raw = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"a record is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InvalidValue("a record is not a JSON object")
    return read(raw)


def read(raw: Mapping[str, Any]) -> Record:
    """The record of this JSON object. A record of an unknown kind, or with an unknown structure, is
    preserved without a meaning."""
    kind = str(raw.get("kind", ""))
    try:
        if kind in set(CardRecordKind):
            return Record(kind, None, (), raw, PciAddress.parse(raw["card"]))
        owner = _owner_in(raw)
        devices = tuple(_device_in(device) for device in raw.get("holds", ()))
        names = {str(key): tuple(map(str, each)) for key, each in raw.get("names", {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError, GcuError):
        known = {*ClaimStep, *CardRecordKind}
        return Record("" if kind in known else kind, None, (), raw)
    return Record(kind, owner, devices, raw, names=names)


def _owner_out(owner: Owner) -> dict[str, Any]:
    if isinstance(owner, ContainerAllocation):
        devices = [str(device) for device in owner.devices]
        return {"grant": {"devices": devices, "total": owner.total, "answer": owner.answer}}
    # A version without orphans reads it as a claim that is being unprepared.
    left = {"left": True} if isinstance(owner, Orphan) else {}
    return {"claim": {**msgspec.to_builtins(owner), **left}}


def _owner_in(raw: Mapping[str, Any]) -> Owner:
    if "grant" in raw:
        entry = raw["grant"]
        devices = tuple(PluginDevice.parse(text) for text in entry["devices"])
        if type(entry["total"]) is not int:
            raise InvalidValue(f"{entry['total']!r} is no number of devices")
        return ContainerAllocation(devices, entry["total"], str(entry["answer"]))
    entry = raw["claim"]
    check_id(entry["uid"], "UID")
    kind = Orphan if entry.get("left") is True else ClaimRef
    return kind(str(entry["namespace"]), str(entry["name"]), entry["uid"])


def _device_out(device: PreparedDevice) -> dict[str, Any]:
    raw: dict[str, Any] = msgspec.to_builtins(device)
    raw["sees"] = tuple(map(str, device.visible_cards))
    # As a record that is read has it.
    return {key: list(each) if isinstance(each, tuple) else each for key, each in raw.items()}


def _device_in(raw: Mapping[str, Any]) -> PreparedDevice:
    _, card = parse_device_name(raw["device"])
    visible = tuple(PciAddress.parse(each) for each in raw["sees"])
    # No version writes it without the device's own card; a CDI file may be damaged.
    sees = visible if card in visible else (card,)
    total = raw.get("total")
    counted = total if type(total) is int and total > 0 else None
    device = msgspec.convert({**raw, "sees": sees, "total": counted}, PreparedDevice)
    if device.share_id is not None:
        check_id(device.share_id, "share ID")
    return device
