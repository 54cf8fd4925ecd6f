"""What a Node tells of its cards, and of whose they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from msgspec import structs

from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.allocator import planned_devices
from dra_driver.device_plugin.inventory import NodeDevices
from dra_driver.device_plugin.node_annotations import node_annotations, node_cards, node_labels
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.card import Card, Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.node_cards import HeldInstance, Hold, NodeCard, parse_cards
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN, TAINT_UNHEALTHY
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.node.checkpoint import records
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, record
from tests.unit.node.world import CARDS, POOL, card, hold

WHOLE, SHARED, DRS = Mode.WHOLE, Mode.SHARED, Mode.DRS
TABLE = ProfileTable.of([Profile("1g.6gb", 0, 6, 6000, 4), Profile("3g.20gb", 1, 2, 20000, 12)])
FREE = NodeCard(
    CARDS[0],
    index=0,
    minor=0,
    slices=6,
    profiles=("1g.6gb", "3g.20gb"),
    total=6,
    numa=0,
    model="S60",
    uuid="TPUH00000000",
    memory_mib=42976,
)
CLAIM = ClaimRef("team", "claim", "uid-claim")
CLAIMED = (CLAIM, (hold(0, mode=SHARED, consumed={"slices": "1"}),))


def grant(mode: Mode, *ordinals: int, total: int = 6) -> ContainerAllocation:
    """Of the first card."""
    return ContainerAllocation(
        tuple(PluginDevice(CARDS[0], mode, each) for each in ordinals), total, ""
    )


def granted(each: ContainerAllocation) -> tuple[Owner, tuple[records.PreparedDevice, ...]]:
    return each, planned_devices(each, POOL)


def recorded(each: ContainerAllocation, pod: str, container: str = "main") -> Recorded:
    return Recorded(pod, container, RESOURCES[each.mode], frozenset(map(str, each.devices)))


def view(
    *holders: tuple[Owner, tuple[records.PreparedDevice, ...]],
    cards: Iterable[Card] = (card(CARDS[0], 0),),
    offer: CardConfig | None = None,
    table: ProfileTable | None = TABLE,
    active: bool = True,
) -> NodeDevices:
    ledger = Ledger()
    for owner, holds in holders:
        ledger = ledger.apply(record(ClaimStep.PREPARE_COMPLETED, owner, holds))
    return NodeDevices(
        cards={each.address: each for each in cards},
        ledger=ledger,
        offer=lambda _: offer or CardConfig(),
        table=lambda _: table,
        active=active,
    )


TWO, THREE = grant(SHARED, 0, 1), grant(DRS, 0, 1, 2)
CARD = grant(WHOLE, 0, total=1)
SICK = replace(card(CARDS[0], 0), problems=(Problem(TAINT_UNHEALTHY, "health", "sick"),))
FOREIGN = replace(card(CARDS[0], 0), problems=(Problem(TAINT_FOREIGN, "", "not ours"),))


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (view(), FREE),
        (view(granted(TWO)), structs.replace(FREE, mode=SHARED, held=(Hold("pod-a", "main", 2),))),
        (view(granted(THREE)), structs.replace(FREE, mode=DRS, held=(Hold("", "", 3),))),
        (view(granted(CARD)), structs.replace(FREE, mode=WHOLE, held=(Hold("", "", 1),))),
        (
            view(granted(grant(SHARED, 0, 1, 2)), granted(TWO)),
            structs.replace(FREE, mode=SHARED, held=(Hold("", "", 3),)),
        ),
        (
            view(granted(TWO), offer=CardConfig(slice_count=4)),
            structs.replace(FREE, mode=SHARED, held=(Hold("pod-a", "main", 2),)),
        ),
        (
            view(offer=CardConfig(modes=frozenset({SHARED}), slice_count=4)),
            structs.replace(FREE, whole=False, slices=4, profiles=(), total=0),
        ),
        (view(table=None), structs.replace(FREE, profiles=(), total=0)),
        (view(active=False), structs.replace(FREE, whole=False, slices=0, profiles=(), total=0)),
        (view(CLAIMED), structs.replace(FREE, problem="claimed")),
        (
            replace(view(), failing=frozenset({device_name(DRS, CARDS[0])})),
            structs.replace(FREE, profiles=(), total=0),
        ),
        (
            replace(view(granted(THREE)), failing=frozenset({device_name(DRS, CARDS[0])})),
            structs.replace(FREE, mode=DRS, held=(Hold("", "", 3),), problem="failing"),
        ),
        (
            replace(view(granted(TWO)), failing=frozenset({device_name(DRS, CARDS[0])})),
            structs.replace(
                FREE, mode=SHARED, held=(Hold("pod-a", "main", 2),), profiles=(), total=0
            ),
        ),
        (view(cards=(SICK,)), structs.replace(FREE, problem="health")),
        (view(cards=(FOREIGN,)), structs.replace(FREE, problem="foreign")),
        (
            view(granted(TWO), cards=()),
            NodeCard(
                CARDS[0],
                index=-1,
                minor=-1,
                whole=False,
                slices=6,
                mode=SHARED,
                held=(Hold("pod-a", "main", 2),),
                problem="lost",
            ),
        ),
    ],
    ids=[
        "free",
        "slices of a pod",
        "an instance of nobody yet",
        "a whole card",
        "handed on from an init container",
        "another slice count, for free cards",
        "offered as shared alone",
        "profiles not known",
        "served by DRA from now on",
        "held by a claim",
        "no instance can be made",
        "no other instance can be made",
        "no instance could be made, and it is shared",
        "sick",
        "foreign instances",
        "lost while in use",
    ],
)
def test_what_is_told_of_a_card(seen: NodeDevices, told: NodeCard) -> None:
    assert node_cards(seen, [recorded(TWO, "pod-a")]) == (told,)


def test_the_order_of_the_kubelets_record_changes_nothing() -> None:
    both = [recorded(THREE, "pod-a", name) for name in ("fetch", "main")]
    seen = view(granted(THREE))
    assert node_cards(seen, both) == node_cards(seen, both[::-1])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (Instance(4, "3g.20gb", "7f2d"), HeldInstance("3g.20gb", 1, 4, "7f2d")),
        (Instance(4, "3g.20gb"), HeldInstance("3g.20gb", 1, 4)),
        (Instance(4, "6g.40gb", "7f2d"), None),
    ],
    ids=["an instance", "of an older tool", "of a profile that is not known"],
)
def test_an_instance_is_told_as_the_tool_calls_it(
    made: Instance, told: HeldInstance | None
) -> None:
    holds = tuple(structs.replace(each, instance=made) for each in planned_devices(THREE, POOL))
    [found] = node_cards(view((THREE, holds)), [recorded(THREE, "pod-a")])
    assert found.held == (Hold("pod-a", "main", 3, told),)


def test_the_annotations_are_ours_and_the_vendors() -> None:
    cards = (card(CARDS[0], 3), card(CARDS[1], 1))
    seen = view(cards=cards)
    found = node_annotations(seen, node_cards(seen, ()))
    assert [each.address for each in parse_cards(found["gcu.enflame.com/cards"])] == [*CARDS[:2]]
    minors = [each.minor for each in cards]
    assert json.loads(found["enflame.com/gcu-shared-capacity"]) == {str(each): 6 for each in minors}
    assert json.loads(found["enflame.com/gcu-drs-capacity"]) == {
        "devices": [
            {"index": str(each.index), "minor": str(each.minor), "capacity": 6} for each in cards
        ],
        "profiles": {"1g.6gb": "0", "3g.20gb": "1"},
    }


def test_a_card_without_a_number_is_not_told_by_it() -> None:
    """Of one that was gone when the agent started, and that containers have."""
    seen = view(granted(TWO), cards=(card(CARDS[1], 1),))
    found = node_annotations(seen, node_cards(seen, ()))
    assert len(parse_cards(found["gcu.enflame.com/cards"])) == 2
    assert json.loads(found["enflame.com/gcu-shared-capacity"]) == {"1": 6}
    told = json.loads(found["enflame.com/gcu-drs-capacity"])["devices"]
    assert [each["minor"] for each in told] == ["1"]


@pytest.mark.parametrize(
    ("cards", "labels"),
    [
        ([NodeCard(CARDS[0], 0, 0, slices=6)], {"enflame.com/gcushare": "true"}),
        ([NodeCard(CARDS[0], 0, 0, total=6)], {"enflame.com/gcushare": "true"}),
        ([NodeCard(CARDS[0], 0, 0)], {}),
        ([], {}),
    ],
    ids=["slices", "instances", "whole cards alone", "no cards"],
)
def test_the_vendors_label(cards: list[NodeCard], labels: dict[str, str]) -> None:
    assert node_labels(cards) == labels
