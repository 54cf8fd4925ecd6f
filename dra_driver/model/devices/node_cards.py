"""What an agent tells of its node's cards where there are no ResourceSlices: an annotation.

The agent writes it from its ledger and from what the kubelet recorded; whoever places pods reads
it. Its meaning, field by field, is in docs/dev/extender.md.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from dra_driver.model.claims.measures import (
    Share,
    instance_shares,
    memory_per_slice,
    slice_shares,
)
from dra_driver.model.devices.device_shares import MAX_SLICES
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress

UNNUMBERED: Final = -1
"""Index and minor of a card that was gone when its agent started: both can be read only while the
card is on the bus."""

_VERSION: Final = 1


class HeldInstance(msgspec.Struct, frozen=True):
    """A container's DRS instance as efsmi calls it; `uuid` is empty where the tool tells none."""

    profile: str
    profile_id: int
    id: int
    uuid: str = ""


class Hold(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one container holds of a card: slices of a shared card, the size of a DRS instance,
    or 1, the card. `pod` is a UID; it is empty as long as the kubelet has not recorded whose it
    is, and then so is `container`. `instance` is None where there is none, or not known."""

    pod: str = ""
    container: str = ""
    amount: int = 0
    instance: HeldInstance | None = None


class NodeCard(msgspec.Struct, frozen=True, omit_defaults=True, rename={"memory_mib": "memory"}):
    """A card as its node's agent has it.

    `slices` is how many a shared card has, 0 where the card is not offered as shared. `profiles`
    are the names of DRS profiles, ascending (``3g.20gb``), and `total` the sum of sizes that an
    empty card holds; none and 0 where it is not offered in DRS mode. `mode` is None while the card
    is free. `problem` says why nothing new may be placed on it, in one word (``lost``); empty
    where something may. `bridges` (as `format_bridges` writes them), `root` and `numa` say where
    the card is. `model`, `uuid` and `memory_mib` are empty and 0 of a card that is gone.
    """

    address: PciAddress
    index: int
    minor: int
    whole: bool = True
    slices: int = 0
    profiles: tuple[str, ...] = ()
    total: int = 0
    mode: Mode | None = None
    held: tuple[Hold, ...] = ()
    problem: str = ""
    bridges: str = ""
    root: str = ""
    numa: int | None = None
    model: str = ""
    uuid: str = ""
    memory_mib: int = 0

    @property
    def is_numbered(self) -> bool:
        """Whether index and minor are known, by which tools of the vendor call a card."""
        return self.minor != UNNUMBERED


class CardKind(msgspec.Struct, frozen=True):
    """Cards that are alike, with the fields of `NodeCard`. Cards of one model can be of several
    kinds, as by another number of slices."""

    model: str
    memory_mib: int
    slices: int
    profiles: tuple[str, ...]
    total: int

    @classmethod
    def of(cls, card: NodeCard) -> CardKind:
        return cls(card.model, card.memory_mib, card.slices, card.profiles, card.total)

    def shares(self, mode: Mode) -> tuple[Share, ...]:
        """What a container can get of a card in shared or in DRS mode, ascending. Nothing where the
        card is not offered so, or is gone. Raises InvalidValue for a malformed profile name."""
        if mode is Mode.DRS:
            return instance_shares(self.profiles, self.total) if self.total else ()
        if not self.memory_mib or not 1 <= self.slices <= MAX_SLICES:
            return ()
        return slice_shares(self.slices, self._memory_per_slice)

    def describe(self, mode: Mode) -> str:
        """``S60 (1g.6gb, 3g.20gb)``, or ``S60 (6 slices of 7162 MiB)``."""
        if mode is Mode.DRS:
            return f"{self.model} ({', '.join(self.profiles)})"
        return f"{self.model} ({self.slices} slices of {self._memory_per_slice} MiB)"

    @property
    def _memory_per_slice(self) -> int:
        return memory_per_slice(self.memory_mib, self.slices)


def render_cards(cards: tuple[NodeCard, ...]) -> str:
    """The annotation's value: JSON on one line, the same for the same cards."""
    body = {"version": _VERSION, "cards": [_card_to_json(each) for each in cards]}
    return json.dumps(body, separators=(",", ":"), sort_keys=True)


def parse_cards(text: str) -> tuple[NodeCard, ...]:
    """The cards of the annotation's value. Fields that are not known are left alone.

    Raises InvalidValue where it is not such a value, or of a version that is not known.
    """
    try:
        report = msgspec.json.decode(text, type=_Report)
        if report.version != _VERSION:
            raise InvalidValue(
                f"annotation {ANNOTATION_CARDS} has version {report.version}, but only {_VERSION} "
                "is known",
                remedy="run the same version of the driver in agent and controller",
            )
        return tuple(map(_card_from_json, report.cards))
    except (ValueError, LookupError, RecursionError, TypeError, AttributeError) as error:
        raise InvalidValue(f"annotation {ANNOTATION_CARDS} cannot be read: {error!r}") from error


class _Report(msgspec.Struct):
    version: int
    cards: tuple[dict[str, Any], ...]


def _card_to_json(card: NodeCard) -> dict[str, Any]:
    raw: dict[str, Any] = msgspec.to_builtins(card)
    del raw["address"]
    return {**raw, "pci": str(card.address), "whole": card.whole}


def _card_from_json(raw: dict[str, Any]) -> NodeCard:
    card = msgspec.convert({**raw, "address": PciAddress.parse(raw["pci"])}, NodeCard)
    if card.held and card.mode is None:
        raise ValueError(f"card {card.address} is held and in no mode")
    if any(hold.amount < 1 for hold in card.held):
        raise ValueError(f"nothing of card {card.address} is held")
    return card
