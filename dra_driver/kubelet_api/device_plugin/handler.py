"""The interface of what lists and allocates devices, one for each resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from dra_driver.model.card import DeviceNode


class ListedDevice(msgspec.Struct, frozen=True):
    """One device in the list for the kubelet. `numa_node` is None if it is unknown."""

    id: str
    healthy: bool = True
    numa_node: int | None = None


class ContainerEdits(msgspec.Struct, frozen=True):
    """What the kubelet adds to a container; `cdi_names` are fully qualified."""

    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    nodes: tuple[DeviceNode, ...] = ()
    cdi_names: tuple[str, ...] = ()


class DeviceHandler(Protocol):
    """All methods are called by several threads at once."""

    def devices(self) -> Sequence[ListedDevice]:
        """All devices of the resource. Neither raises nor waits."""

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        """`size` of the `available` devices, with the `included` ones; empty if there is no
        preference. Does not raise, and waits for a few seconds at most."""

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        """Give a container these devices; idempotent. Raises GcuError; then it gets none."""
