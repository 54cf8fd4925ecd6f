"""What a pod holds on its node by the vendor's limits, as kubelets hand devices out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from dra_driver.asks.limits import COUNTED, Container, Pod, limit_names, read_ask
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode

_MODES: Final = MappingProxyType({limit: mode for mode, limit in RESOURCES.items()})


@dataclass(frozen=True, slots=True)
class LimitRequest:
    """`containers` are those that hold devices while the pod runs, sidecars included: name and
    amount (cards, slices, or the size of one DRS instance). `total` is more than their sum where an
    init container requests more than the containers after it."""

    mode: Mode
    containers: tuple[tuple[str, int], ...]
    total: int


def concerns_us(pod: Pod) -> bool:
    """Whether any container has one of the limits, be it 0: kube-scheduler asks the extender about
    such pods, too."""
    return bool(limit_names(pod, COUNTED.__contains__, zero=True))


def parse_limits(pod: Pod) -> LimitRequest | None:
    """The pod's request; None where the pod requests no GCU.

    Raises Refused for what no node can give, whatever is free on it.
    """
    ask = read_ask(pod, COUNTED)
    if ask is None:
        return None
    mode, asking = _MODES[ask.limits[0]], ask.containers
    holding = [container for container in asking if not container.ends]
    if mode is Mode.DRS:
        holding = list(_instances(asking))
    # What only init containers request is held for the pod until it ends.
    holding = holding or [max(asking, key=attrgetter("amount"))]
    kept = tuple((container.name, container.amount) for container in holding)
    return LimitRequest(mode, kept, ask.peak)


def _instances(asking: Sequence[Container]) -> Iterator[Container]:
    """Which container holds which instance. The kubelet hands an init container's devices on to the
    next container that requests some, be it a sidecar; without one, the pod has them until it
    ends."""
    before = None
    for container in asking:
        if before is not None and container.amount != before.amount:
            raise Refused(
                f"init container {before.name} asks for a DRS instance of size {before.amount}, "
                f"and container {container.name}, to which it is handed on, for size "
                f"{container.amount}",
                remedy="request the same size in both",
            )
        before = container if container.ends else None
        if before is None:
            yield container
    if before is not None:
        yield before
