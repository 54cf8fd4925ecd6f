"""What a request's GcuConfig asks for, as ``capacity.requests``: memory and compute are another
amount on each kind of card (docs/adr/0038). Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.claim_request import ExactRequest
from controller.allocator.device import DeviceKind
from controller.allocator.device_request import DeviceRequest
from controller.allocator.nodes.signature import Fill, reads_own
from controller.allocator.packing.policy import Policy
from controller.allocator.packing.strategy import SortKey
from dra_driver.config.device_config import ISOLATION, ISOLATION_FIELD
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.devices.node_cards import CardKind
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ATTR_MEMORY_PER_SLICE_MIB,
    ATTR_MODEL,
    ATTR_PROFILES,
    ATTR_TYPE,
    CLASS_WHOLE,
    DRIVER,
)
from dra_driver.selector.allowance import AllowanceSpent
from dra_driver.selector.selector import Selectors

_OF: Final = f'device.attributes["{DRIVER}"].'
_AMOUNTS: Final = frozenset(CAPACITY_OF_MODE.values())
_LEAST: Final = "1"  # rounded up to the smallest profile


@dataclass(frozen=True, slots=True)
class Alternative:
    """So much of these capacities, of devices that satisfy `selector`; of any if it is empty."""

    capacity: Mapping[str, str]
    selector: str = ""

    @property
    def name(self) -> str:
        """As a subrequest is called, such as ``slices-2``; those of one request differ."""
        return "-".join(f"{name}-{amount}" for name, amount in self.capacity.items())


@dataclass(frozen=True, slots=True)
class CardParts:
    """The known `kinds` of devices that many claims can share. `policy` says which part of a card
    is preferred. `selectors` are the calling thread's."""

    kinds: Collection[DeviceKind]
    policy: Policy
    selectors: Selectors

    def alternatives(self, title: str, exact: ExactRequest) -> Sequence[Alternative]:
        """What is to be written for the request, the preferred alternative first; nothing where
        ``capacity.requests`` has all. `title` names the request. Raises Refused where there is no
        such part, or ``capacity.requests`` has less than GcuConfig."""
        asked, unwritten = exact.device_request, exact.unwritten
        if unwritten and asked.admin_access:
            raise Refused(
                f"{title}: adminAccess is for whole cards, and its GcuConfig asks for "
                f"{_listed(unwritten)}",
                remedy=f"request the DeviceClass {CLASS_WHOLE}, or drop adminAccess",
            )
        try:
            if asked.measures is not None and not asked.capacity:
                return self._covering(title, asked)
            self._check(title, asked)
        except AllowanceSpent as spent:
            raise Refused(
                f"{title}: its selectors are too costly to evaluate: {spent.selector}",
                remedy="select devices by simpler expressions, or ask by capacity.requests",
            ) from spent
        capacity = {name: unwritten[name] for name in unwritten.keys() & _AMOUNTS}
        if ISOLATION_FIELD in unwritten:
            mode = ISOLATION[unwritten[ISOLATION_FIELD]]
            capacity.setdefault(CAPACITY_OF_MODE[mode], _LEAST)
        return [Alternative(capacity)] if capacity else ()

    def _covering(self, title: str, asked: DeviceRequest) -> Sequence[Alternative]:
        """By memory and compute: the smallest part of each kind of card that covers both. Cards on
        which that is as much of one capacity are one alternative."""
        selected = self._selected(title, asked)
        by_amount: defaultdict[tuple[str, int], list[tuple[SortKey, str]]] = defaultdict(list)
        strategy = self.policy.for_cards(asked)
        for kind in selected:
            fit = asked.capacity_fit(kind)
            if fit is not None:
                units = fit.consumed[kind.shared_capacity].units
                key = strategy.card_key(Fill(unused=1, left=fit.left))
                by_amount[kind.shared_capacity, units].append((key, _selector(kind)))
        if not by_amount:
            raise Refused(
                f"{title} asks for {_listed(asked.texts)}, which no part of a card covers: "
                f"{'; '.join(sorted(set(map(_describe, selected))))}",
                remedy=f"ask for less, or for a whole card by the DeviceClass {CLASS_WHOLE}",
            )
        ordered = sorted(by_amount.items(), key=lambda item: (min(item[1])[0], item[0]))
        return [
            Alternative({name: str(units)}, _any_of(selector for _, selector in cards))
            for (name, units), cards in ordered
        ]

    def _selected(self, title: str, asked: DeviceRequest) -> Sequence[DeviceKind]:
        known = self._known()
        selected = [kind for kind in known if self._selects(asked, kind)]
        if not selected:
            what = "is published that its class and selectors choose" if known else "is known yet"
            raise Refused(
                f"{title} asks for {_listed(asked.texts)}, and no part of a card {what}, so it "
                "cannot be turned into slices or a size",
                remedy="create the claim again once an agent has published such a card, or ask for "
                "slices or size by capacity.requests",
            )
        return selected

    def _check(self, title: str, asked: DeviceRequest) -> None:
        """Raises Refused where a device would give less than the measures, as kube-scheduler reads
        the capacity alone."""
        if asked.measures is None:
            return
        less = {
            _describe(kind)
            for kind in self._known()
            if asked.undercuts(kind) and self._selects(asked, kind)
        }
        if less:
            raise Refused(
                f"{title}: its capacity.requests are less than its GcuConfig asks for "
                f"({_listed(asked.measures.texts)}) on {'; '.join(sorted(less))}",
                remedy="leave capacity.requests out",
            )

    def _known(self) -> Sequence[DeviceKind]:
        """Those that say how they are divided, as agents publish them."""
        return [kind for kind in self.kinds if kind.shares and kind.text(ATTR_MODEL)]

    def _selects(self, asked: DeviceRequest, kind: DeviceKind) -> bool:
        """Whether the request may choose devices of the kind: what a selector reads of a card's own
        is not known here."""
        for text in asked.selectors:
            if reads_own([text], [kind], self.selectors):
                continue
            try:
                if not self.selectors.matches(text, kind.common):
                    return False
            except InvalidValue:
                return False
        return True


def _selector(kind: DeviceKind) -> str:
    """Chooses cards that are divided as those of the kind are. It can be evaluated on any device of
    the driver."""
    mode, model = kind.text(ATTR_TYPE), kind.text(ATTR_MODEL)
    divided = (
        f"{_OF}{ATTR_PROFILES} == {_quoted(kind.text(ATTR_PROFILES))}"
        if mode == Mode.DRS
        else f"{_OF}{ATTR_MEMORY_PER_SLICE_MIB} == {kind.text(ATTR_MEMORY_PER_SLICE_MIB)}"
    )
    return f'{_OF}{ATTR_TYPE} == "{mode}" && {_OF}{ATTR_MODEL} == {_quoted(model)} && {divided}'


def _any_of(selectors: Iterable[str]) -> str:
    different = sorted(set(selectors))
    return different[0] if len(different) == 1 else " || ".join(f"({each})" for each in different)


def _quoted(text: str) -> str:
    """As a string of CEL, whose escapes JSON's are."""
    return json.dumps(text, ensure_ascii=False)


def _describe(kind: DeviceKind) -> str:
    """``S60 (6 slices of 7162 MiB)``."""
    total = kind.capacity[kind.shared_capacity].total.units
    per_slice, profiles = kind.text(ATTR_MEMORY_PER_SLICE_MIB), kind.text(ATTR_PROFILES)
    memory = int(per_slice) * total if per_slice.isdecimal() else 0
    card = CardKind(kind.text(ATTR_MODEL), memory, total, tuple(profiles.split(",")), total)
    return card.describe(Mode(kind.text(ATTR_TYPE)))


def _listed(texts: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {text}" for name, text in texts.items())
