"""The port behind which devices are listed and given out, one for each resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dra_driver.model.card import DeviceNode


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """One device as the kubelet is told of it. `numa_node` is None where it has none."""

    id: str
    healthy: bool = True
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """What the kubelet shall add to a container; `cdi_names` are fully qualified."""

    variables: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[DeviceNode, ...] = ()
    cdi_names: tuple[str, ...] = ()


class DeviceHandler(Protocol):
    """All methods are called by several threads at once."""

    def devices(self) -> Sequence[ListedDevice]:
        """All devices of the resource. Neither raises nor waits."""

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        """`size` of the `available` devices, the `included` among them, or none where they would
        not be given out. Neither raises nor waits."""

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        """Give a container these devices; the same ones again get an answer as good. Raises
        GcuError, and then the container gets none."""
