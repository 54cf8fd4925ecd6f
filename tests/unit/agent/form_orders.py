"""Every order of events of a card: claims that hold its form, and what it is offered as changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dra_driver.agent.slices.device_layout import Devices, card_devices, with_layouts_in_use
from dra_driver.config.card_rules import CardConfig
from dra_driver.model.card import Card, Ecc
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_CHANGING, TAINT_UNHEALTHY
from dra_driver.model.profile import Profile, ProfileTable
from tests.unit.node.world import CARDS, card

WITH_ECC = ProfileTable.of([Profile("1g.6gb", 0, 6, 6860, 4), Profile("6g.40gb", 2, 1, 41160, 24)])
NO_ECC = ProfileTable.of([Profile("1g.7gb", 0, 6, 8000, 4), Profile("6g.48gb", 2, 1, 48000, 24)])
CARD = replace(card(CARDS[0], 0), ecc=Ecc(current=True, pending=True))

Counted = dict[str, tuple[Any, Any]]


@dataclass
class Node:
    """One card, published anew after each event; `holders` are the claims that have it."""

    card: Card = CARD
    offer: CardConfig = field(default_factory=CardConfig)
    tables: dict[bool, ProfileTable] = field(
        default_factory=lambda: {True: WITH_ECC, False: NO_ECC}
    )
    here: bool = True
    holders: int = 0
    published: Devices = ()
    owed: Counted = field(default_factory=dict)

    def wanted(self) -> Devices:
        assert self.card.ecc is not None
        table = self.tables.get(self.card.ecc.current)
        return card_devices(self.card, self.offer, table, "controller")

    def publish(self) -> None:
        wanted = {self.card.address: self.wanted()} if self.here else {}
        held = frozenset({self.card.address} if self.holders else ())
        self.published = with_layouts_in_use(wanted, self.published, held)

    def copied(self) -> Node:
        """What happens to it does not happen to this one."""
        return replace(self, tables=dict(self.tables))

    def is_waiting(self) -> bool:
        """Whether a form waits for a claim."""
        return any(t["key"] == TAINT_CHANGING for d in self.published for t in d["taints"])

    def check(self) -> None:
        now, new = counted(self.published), counted(self.wanted())
        if not self.holders:
            assert now == (new if self.here else {}), "a free card is as it shall be"
        # What a claim is counted by is as it was when the first one came that is still there.
        assert self.owed.items() <= now.items()
        assert self.owed.items() <= new.items() or now == self.owed, "never two forms at once"
        if self.holders and now == new:
            self.owed = now  # what came besides may be a claim's by now
        keys = [{each["key"] for each in device["taints"]} for device in self.published]
        if self.here:
            assert all((TAINT_CHANGING in each) == (now != new) for each in keys)
        assert all((TAINT_UNHEALTHY in each) == (not self.here) for each in keys)


def counted(devices: Devices) -> Counted:
    return {
        each["name"]: (each.get("capacity"), each.get("allowMultipleAllocations"))
        for each in devices
    }


def four_slices(node: Node) -> None:
    node.offer = replace(node.offer, slice_count=4)


def six_slices(node: Node) -> None:
    node.offer = replace(node.offer, slice_count=6)


def shared_alone(node: Node) -> None:
    node.offer = replace(node.offer, modes=frozenset({Mode.SHARED}))


def all_modes(node: Node) -> None:
    node.offer = replace(node.offer, modes=frozenset(Mode))


def ecc_switched(node: Node) -> None:
    assert node.card.ecc is not None
    now = not node.card.ecc.current
    node.card = replace(node.card, ecc=Ecc(now, now), memory_mib=42976 if now else 49152)


def table_unknown(node: Node) -> None:
    """Nobody has seen the profiles of the other state of ECC."""
    del node.tables[False]


def table_learnt(node: Node) -> None:
    node.tables[False] = NO_ECC


def claim_comes(node: Node) -> None:
    """The controller places none on a card with a taint."""
    tainted = any(
        taint["key"] in {TAINT_CHANGING, TAINT_UNHEALTHY}
        for device in node.published
        for taint in device["taints"]
    )
    if tainted or not node.published:
        return
    if not node.holders:
        node.owed = counted(node.published)
    node.holders += 1


def claim_ends(node: Node) -> None:
    node.holders = max(0, node.holders - 1)
    if not node.holders:
        node.owed = {}


def agent_starts_without_the_card(node: Node) -> None:
    """Then it is not even known as lost."""
    node.here = False


def card_is_back(node: Node) -> None:
    node.here = True


Event = Callable[[Node], None]
CHANGES: list[list[Event]] = [
    [four_slices, six_slices],
    [shared_alone, all_modes],
    [ecc_switched],
    [ecc_switched, table_unknown, table_learnt],
    [four_slices, shared_alone, ecc_switched],
]
ALWAYS: list[Event] = [
    claim_comes,
    claim_ends,
    agent_starts_without_the_card,
    card_is_back,
]


def changes_named(changes: list[Event]) -> str:
    return " ".join(each.__name__ for each in changes)


def play_every_order(changes: list[Event], length: int) -> int:
    """Play every order of `length` events after a claim has come, and check the node after each
    event; gives how often a form had to wait for a claim.

    Orders that begin with the same events have these in common: each is played once.
    """
    node = Node()
    node.publish()
    claim_comes(node)
    return _play_from(node, [*changes, *ALWAYS], length, ())


def _play_from(node: Node, events: list[Event], left: int, past: tuple[str, ...]) -> int:
    waited = 0
    for event in events if left else ():
        if event is table_unknown and False not in node.tables:
            continue
        after = node.copied()
        event(after)
        after.publish()
        names = (*past, event.__name__)
        try:
            after.check()
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter {', '.join(names)}") from error
        waited += after.is_waiting() + _play_from(after, events, left - 1, names)
    return waited
