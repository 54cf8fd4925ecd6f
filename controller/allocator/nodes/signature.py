"""What an allocation reads of a card, interned: few cards of a cluster differ in it (ADR 23).

What a request can get of a card, and the words why not, are computed once for a signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from controller.allocator.allocated_devices import DeviceUsage
from controller.allocator.device import Device, DeviceKind
from controller.allocator.device_request import WHOLE, CapacityFit, DeviceRequest
from controller.allocator.taints import untolerated
from dra_driver.model.errors import InvalidValue
from dra_driver.selector.selector import Selectors

_MOST_FITS: Final = 32_768  # some 16 MiB


class Feasibility(StrEnum):
    """Whether a device can serve a request, or the first reason why not."""

    FREE = "free"
    TOO_SMALL = "too small"
    FULL = "full"
    COUNTERS = "with counters, which only kube-scheduler allocates"
    NO_COUNTERS = "without counters, which kube-scheduler does not allocate yet"
    HELD = "held"
    EXCLUDED = "excluded"
    TAINTED = "tainted"


class Fill(NamedTuple):
    """How full a shared device would be with the grant: of two the fuller one sorts first. Of a
    device that is not shared, all is 0."""

    unused: int = 0  # 1 if nothing of it is allocated, 0 if something is
    left: int = 0  # in thousandths of the device, after the grant
    minus_alike: int = 0  # minus the number of shares of the same size that it holds


class DeviceFit(NamedTuple):
    """A device that can serve a request, by its place in its card."""

    at: int
    capacity_fit: CapacityFit
    use: DeviceUsage | None
    fill: Fill


@dataclass(frozen=True, slots=True, eq=False)
class CardFit:
    """What a request gets of a card: of the `selected` devices those that are free for it. `error`
    says why a selector could not be evaluated on a device, which then is not selected."""

    selected: tuple[int, ...]
    free: tuple[DeviceFit, ...]
    error: str = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CardSignature:
    """The kinds of a card's devices, what is allocated of each, and `vanished`: the names' first
    word (the mode) of allocated devices that are not published any more. `load` is what is
    allocated, in thousandths of a card; of a `free` card nothing is, and it has only our own taint.
    `for_scheduler`: see `Inventory`.
    """

    kinds: tuple[DeviceKind, ...]
    uses: tuple[DeviceUsage | None, ...]
    vanished: tuple[str, ...]
    load: int
    free: bool
    for_scheduler: bool

    def fit(self, device_request: DeviceRequest, selectors: Selectors) -> CardFit | None:
        """What the request gets of each card with this signature. None if a selector reads what is
        a card's own: `fit_of` evaluates it. Raises AllowanceSpent."""
        return _fit(self, device_request, selectors)

    def fit_of(
        self, device_request: DeviceRequest, devices: Sequence[Device], selectors: Selectors
    ) -> CardFit:
        """What the request gets of one card with this signature and these devices. Raises
        AllowanceSpent."""
        return self.fit(device_request, selectors) or self.select(
            device_request, devices, selectors
        )

    def feasibility(self, device_request: DeviceRequest, index: int) -> Feasibility:
        """Whether the selected device at `index` can serve the request."""
        kind, use = self.kinds[index], self.uses[index]
        capacity_fit = device_request.capacity_fit(kind)
        if capacity_fit is None:
            return Feasibility.TOO_SMALL
        if use is not None and kind.multiple and not has_room(capacity_fit, use):
            return Feasibility.FULL
        taken = self._taken(device_request, index)
        if taken is not None:
            return taken
        return Feasibility.TAINTED if capacity_fit.taints else Feasibility.FREE

    def _taken(self, device_request: DeviceRequest, index: int) -> Feasibility | None:
        """Why the device cannot be allocated for the request, whatever it asks of it."""
        kind, use = self.kinds[index], self.uses[index]
        if self._has_no_mode(index):
            return None if use is None or device_request.admin_access else Feasibility.HELD
        if kind.counters is not self.for_scheduler:
            return Feasibility.COUNTERS if kind.counters else Feasibility.NO_COUNTERS
        # kube-scheduler gives administrators no other device of a card whose counters are used up
        # (kubernetes#140729).
        if self.for_scheduler or not device_request.admin_access:
            if use is not None and (use.wholes or not kind.multiple):
                return Feasibility.HELD
            if self.holder(index):
                return Feasibility.EXCLUDED
        return None

    def holder(self, index: int) -> str:
        """The type of another device of the card that is allocated, as a card is in one mode at a
        time; empty if there is none. The type of a vanished device comes from its name."""
        for other, use in enumerate(self.uses):
            if use is not None and other != index and not self._has_no_mode(other):
                return self.kinds[other].text("type") or "unknown"
        return self.vanished[0] if self.vanished else ""

    def _has_no_mode(self, index: int) -> bool:
        """Whether kube-scheduler allocates other devices of the card all the same."""
        return self.for_scheduler and self.kinds[index].is_for_admins

    def select(
        self,
        device_request: DeviceRequest,
        given: Sequence[Device | DeviceKind],
        selectors: Selectors,
    ) -> CardFit:
        """Evaluates the request's selectors on `given`: the card's devices, or their kinds. Raises
        AllowanceSpent."""
        selected: list[int] = []
        free: list[DeviceFit] = []
        error = ""
        for index, device in enumerate(given):
            values = device.common if isinstance(device, DeviceKind) else device.selector_input
            try:
                if not all(selectors.matches(text, values) for text in device_request.selectors):
                    continue
            except InvalidValue as failed:
                error = error or str(failed)
                continue
            selected.append(index)
            capacity_fit = device_request.capacity_fit(self.kinds[index])
            if (
                capacity_fit is not None
                and self.feasibility(device_request, index) is Feasibility.FREE
            ):
                use = self.uses[index]
                free.append(
                    DeviceFit(index, capacity_fit, use, _fill(self.kinds[index], use, capacity_fit))
                )
        return CardFit(tuple(selected), tuple(free), error)


@lru_cache(_MOST_FITS)
def _fit(
    signature: CardSignature, device_request: DeviceRequest, selectors: Selectors
) -> CardFit | None:
    """One cache for all signatures: requests that nobody had before fill it up once, and not once
    for each signature."""
    if reads_own(device_request.selectors, signature.kinds, selectors):
        return None
    return signature.select(device_request, signature.kinds, selectors)


def reads_own(
    expressions: Sequence[str], kinds: Sequence[DeviceKind], selectors: Selectors
) -> bool:
    """Whether any of the expressions reads what is a card's own."""
    return any(
        not selectors.reads(text, kind.common.shape).isdisjoint(kind.own)
        for kind in kinds
        for text in expressions
    )


def has_room(capacity_fit: CapacityFit, use: DeviceUsage) -> bool:
    """Whether a device with that use has as much left."""
    consumed = use.consumed
    return all(
        consumed.get(name, 0) + amount <= total for name, amount, total in capacity_fit.amounts
    )


def _fill(kind: DeviceKind, use: DeviceUsage | None, capacity_fit: CapacityFit) -> Fill:
    """How full the device of that kind and use would be with `capacity_fit`."""
    if not kind.multiple:
        return Fill()
    if use is None:
        return Fill(unused=1, left=capacity_fit.left)
    used = [
        use.consumed.get(name, 0) * WHOLE // total
        for name, _, total in capacity_fit.amounts
        if total
    ]
    alike = use.shares.get(capacity_fit.share, 0)
    return Fill(left=capacity_fit.left - sum(used), minus_alike=-alike)


_Content = tuple[tuple[DeviceKind, ...], tuple[DeviceUsage | None, ...], tuple[str, ...]]


class Signatures:
    """One object for equal cards."""

    def __init__(self, *, for_scheduler: bool) -> None:
        self._for_scheduler = for_scheduler
        self._known: WeakValueDictionary[_Content, CardSignature] = WeakValueDictionary()

    def of(
        self,
        kinds: tuple[DeviceKind, ...],
        uses: tuple[DeviceUsage | None, ...],
        vanished: tuple[str, ...],
    ) -> CardSignature:
        """The signature of cards with this content."""
        content = kinds, uses, vanished
        signature = self._known.get(content)
        if signature is None:
            loads = [_load(kind, use) for kind, use in zip(kinds, uses, strict=True) if use]
            tainted = any(untolerated(kind.taints, ()) for kind in kinds if not kind.is_for_admins)
            free = not loads and not vanished and not tainted
            load = max(loads, default=0)
            signature = CardSignature(*content, load, free, self._for_scheduler)
            self._known[content] = signature
        return signature


def _load(kind: DeviceKind, use: DeviceUsage) -> int:
    """How much of the device is allocated, in thousandths; at least 1 if any part is."""
    if use.wholes or not kind.multiple:
        return WHOLE
    parts = [
        use.consumed.get(name, 0) * WHOLE // each.total.value
        for name, each in kind.capacity.items()
        if each.total.value
    ]
    return max(1, min(WHOLE, max(parts, default=WHOLE)))
