"""What an agent tells of its node's cards where there are no ResourceSlices: an annotation.

The agent writes it from its ledger and from what the kubelet recorded; whoever places pods reads
it. Its meaning, field by field, is in docs/dev/extender.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress

UNNUMBERED: Final = -1
"""Index and minor of a card that was gone when its agent started: both can be read only while the
card is on the bus."""

_VERSION: Final = 1
# The last two: Python reads Infinity in JSON, and brackets to any depth.
_UNREADABLE: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class HeldInstance:
    """A container's DRS instance as efsmi calls it; `uuid` is empty where the tool tells none."""

    profile: str
    profile_id: int
    id: int
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """What one container holds of a card: slices of a shared card, the size of a DRS instance,
    or 1, the card. `pod` is a UID; it is empty as long as the kubelet has not recorded whose it
    is, and then so is `container`. `instance` is None where there is none, or not known."""

    pod: str
    container: str
    amount: int
    instance: HeldInstance | None = None


@dataclass(frozen=True, slots=True)
class NodeCard:
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


def render_cards(cards: tuple[NodeCard, ...]) -> str:
    """The annotation's value: JSON on one line, the same for the same cards."""
    body = {"version": _VERSION, "cards": [_card_to_json(each) for each in cards]}
    return json.dumps(body, separators=(",", ":"), sort_keys=True)


def parse_cards(text: str) -> tuple[NodeCard, ...]:
    """The cards of the annotation's value. Fields that are not known are left alone.

    Raises InvalidValue where it is not such a value, or of a version that is not known.
    """
    try:
        body = json.loads(text)
        version = body["version"]
        cards = body["cards"] if version == _VERSION else ()
        found = tuple(_card_from_json(each) for each in cards)
    except _UNREADABLE as error:
        raise InvalidValue(f"annotation {ANNOTATION_CARDS} cannot be read: {error!r}") from error
    if version != _VERSION:
        raise InvalidValue(
            f"annotation {ANNOTATION_CARDS} has version {version!r}, but only {_VERSION} is known",
            remedy="run the same version of the driver in agent and controller",
        )
    return found


def _card_to_json(card: NodeCard) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "slices": card.slices,
        "profiles": list(card.profiles),
        "total": card.total,
        "mode": card.mode.value if card.mode else "",
        "held": [_hold_to_json(each) for each in card.held],
        "problem": card.problem,
        "bridges": card.bridges,
        "root": card.root,
        "model": card.model,
        "uuid": card.uuid,
        "memory": card.memory_mib,
    }
    return {
        "pci": str(card.address),
        "index": card.index,
        "minor": card.minor,
        "whole": card.whole,
        **{name: value for name, value in optional.items() if value},
        **({} if card.numa is None else {"numa": card.numa}),
    }


def _hold_to_json(hold: Hold) -> dict[str, Any]:
    owner = {"pod": hold.pod, "container": hold.container} if hold.pod else {}
    instance = {"instance": asdict(hold.instance)} if hold.instance else {}
    return {**owner, "amount": hold.amount, **instance}


def _hold_from_json(raw: Mapping[str, Any]) -> Hold:
    made = raw.get("instance")
    return Hold(
        str(raw.get("pod", "")),
        str(raw.get("container", "")),
        int(raw["amount"]),
        _instance_from_json(made) if made else None,
    )


def _instance_from_json(raw: Mapping[str, Any]) -> HeldInstance:
    return HeldInstance(
        str(raw["profile"]), int(raw["profile_id"]), int(raw["id"]), str(raw["uuid"])
    )


def _card_from_json(raw: Mapping[str, Any]) -> NodeCard:
    numa = raw.get("numa")
    if raw.get("held") and not raw.get("mode"):
        raise ValueError(f"card {raw['pci']} is held and in no mode")
    return NodeCard(
        address=PciAddress.parse(raw["pci"]),
        index=int(raw["index"]),
        minor=int(raw["minor"]),
        whole=bool(raw["whole"]),
        slices=int(raw.get("slices", 0)),
        profiles=tuple(str(name) for name in raw.get("profiles", ())),
        total=int(raw.get("total", 0)),
        mode=Mode(raw["mode"]) if raw.get("mode") else None,
        held=tuple(_hold_from_json(each) for each in raw.get("held", ())),
        problem=str(raw.get("problem", "")),
        bridges=str(raw.get("bridges", "")),
        root=str(raw.get("root", "")),
        numa=None if numa is None else int(numa),
        model=str(raw.get("model", "")),
        uuid=str(raw.get("uuid", "")),
        memory_mib=int(raw.get("memory", 0)),
    )
