"""Who holds something of a card: a claim, a container that the device plugin served, or nobody any
more, where what was held cannot be taken away yet."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from itertools import count

import msgspec

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress


class ContainerAllocation(msgspec.Struct, frozen=True):
    """What one container got from the device plugin. The kubelet names no container, so the devices
    are its identity: the same ones asked for again are the same grant.

    `devices` are ascending and of one mode; but for whole cards they are of one card. `total` is
    how many devices of that mode the card had then, which holds for as long as one is held.
    `answer` is another text at each Allocate: if it has changed since the grant was read, the
    devices were given out again. Raises InvalidValue for devices that are not like that.
    """

    devices: tuple[PluginDevice, ...]
    total: int
    answer: str

    def __post_init__(self) -> None:
        if not self.devices or list(self.devices) != sorted(set(self.devices)):
            raise InvalidValue("a grant's devices are not ascending, or there are none")
        mixed = len({device.mode for device in self.devices}) > 1
        if mixed or (self.mode is not Mode.WHOLE and len(self.cards) > 1):
            raise InvalidValue(
                f"devices {', '.join(map(str, self.devices))} cannot be given to one container",
                remedy="a container's slices, or its DRS instance, must come from one card: "
                "request fewer, or wait until one card has enough free",
            )

    @property
    def mode(self) -> Mode:
        """The mode that it puts its cards in."""
        return self.devices[0].mode

    @property
    def cards(self) -> tuple[PciAddress, ...]:
        """The cards that it holds something of, ascending."""
        return tuple(sorted({device.card for device in self.devices}))

    @property
    def uid(self) -> str:
        """Of the same form as a claim's UID; the same for the same devices."""
        return grant_uid(self.devices)

    @property
    def title(self) -> str:
        """For people, who find the pod by it (`docs/user/device-plugin.md`)."""
        return f"the container with {RESOURCES[self.mode]} {self}"

    @property
    def renewal(self) -> str:
        """What a person can do to have it chosen anew."""
        return "delete the pod, so that it is placed anew"

    def __str__(self) -> str:
        if self.mode is Mode.WHOLE:
            return ",".join(map(str, self.cards))
        ordinals = ",".join(str(device.ordinal) for device in self.devices)
        return f"{self.cards[0]}/{self.mode.value}/{ordinals}"


class Orphan(msgspec.Struct, frozen=True):
    """Devices of an ended claim that could not be destroyed, because their card failed. Its pod
    does not wait for them, and the claim itself may have been allocated anew meanwhile: so this has
    a `uid` of its own."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, owner: ClaimRef, known: Container[str]) -> Orphan:
        """Another one than those whose UIDs are `known`."""
        digest = hashlib.sha256(owner.uid.encode()).hexdigest()[:24]
        uids = (f"left-{digest}-{number}" for number in count(1))
        uid = next(uid for uid in uids if uid not in known)
        return cls(owner.namespace, owner.name, uid)

    @property
    def title(self) -> str:
        """For people."""
        return f"what claim {self.namespace}/{self.name} left"

    @property
    def renewal(self) -> str:
        """What a person can do; nobody asks for anything in its name."""
        return "see the kernel log for what keeps the card"


Owner = ClaimRef | ContainerAllocation | Orphan


def grant_uid(devices: Iterable[PluginDevice]) -> str:
    text = ",".join(str(device) for device in sorted(devices))
    return f"grant-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
