"""What the metrics say of cards, and of what claims have of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.core import GaugeMetricFamily

from dra_driver.agent import card_metrics
from dra_driver.agent import metric_specs as specs
from dra_driver.agent.context import AgentContext
from dra_driver.agent.slices.device_layout import DevicesSource
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.card import Readings
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.device_shares import drs_device
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import JournalError
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_ADMINISTRATORS, TAINT_ALLOCATED_BY
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, record
from tests.unit.node.claims.counted import ref
from tests.unit.node.world import CARDS, card, hold

FIRST, SECOND, THIRD = CARDS[:3]
CAPACITY = {Mode.WHOLE: {}, Mode.SHARED: {"slices": "6"}, Mode.DRS: {"size": "6"}}
DEVICES: list[Object] = [
    {
        "name": device_name(mode, address),
        "capacity": {name: {"value": value} for name, value in capacity.items()},
    }
    for address in (FIRST, SECOND, THIRD)
    for mode, capacity in CAPACITY.items()
]
SIZES = card_metrics.sizes_of(DEVICES)
KNOWN = {address: card(address, minor) for minor, address in enumerate(CARDS[:2])}


def ledger(*owners: tuple[Owner, PreparedDevice]) -> Ledger:
    found = Ledger()
    for owner, device in owners:
        found = found.apply(record(ClaimStep.PREPARE_COMPLETED, owner, (device,)))
    return found


def granted(found: Ledger) -> card_metrics.Granted:
    return card_metrics.granted(found, KNOWN.values())


def values(family: GaugeMetricFamily, *labels: str) -> Mapping[tuple[str, ...], float]:
    return {tuple(each.labels[name] for name in labels): each.value for each in family.samples}


TABLE = ProfileTable.of(
    Profile(name, number, 6 // size, memory, 4 * size)
    for number, (name, size, memory) in enumerate(
        (("1g.6gb", 1, 6144), ("3g.20gb", 3, 20480), ("6g.40gb", 6, 40960))
    )
)
SLICES = hold(0, mode=Mode.SHARED, consumed={"slices": "2"})
INSTANCE = hold(1, mode=Mode.DRS, consumed={"size": "3"}, instance=Instance(0, "3g.23gb", "u"))
PLUGIN = ContainerAllocation((PluginDevice(THIRD, Mode.WHOLE, 0),), total=1, answer="a")
TWO_CLAIMS = (ref("slices"), SLICES), (ref("instance"), INSTANCE)
ALL_HELD = ledger(*TWO_CLAIMS, (ref("admin"), hold(2, admin_access=True)), (PLUGIN, hold(2)))


def test_sizes() -> None:
    assert values(card_metrics.about_sizes(SIZES), "mode", "pci_bus_id") == {
        (mode, str(address)): size
        for mode, size in (("whole", 1), ("shared", 6), ("drs", 6))
        for address in (FIRST, SECOND, THIRD)
    }


def test_what_is_measured_has_the_labels_of_a_card_and_nothing_unknown_has_a_sample() -> None:
    cards = [
        replace(KNOWN[FIRST], readings=Readings(35.0, None, 2)),
        replace(KNOWN[SECOND], readings=Readings(power=99.5)),
    ]
    found = {each.name: values(each, *specs.CARD) for each in card_metrics.about_readings(cards)}
    first, second = card_metrics.about_cards(cards).samples
    labels = [tuple(each.labels[name] for name in specs.CARD) for each in (first, second)]
    assert found == {
        "gcu_card_temperature_celsius": {labels[0]: 35.0},
        "gcu_card_power_watts": {labels[1]: 99.5},
        "gcu_card_memory_used_bytes": {labels[0]: 2.0 * 1024 * 1024},
    }


def test_the_device_for_administrators_is_no_size_and_its_taint_no_problem() -> None:
    for_admins: Object = {
        "name": device_name(Mode.WHOLE, FIRST).replace("whole", "admin"),
        "taints": [{"key": TAINT_ADMINISTRATORS, "effect": "NoSchedule"}],
    }
    assert card_metrics.sizes_of([*DEVICES, for_admins]) == SIZES
    assert values(card_metrics.about_problems([*DEVICES, for_admins])) == {}
    largest = card_metrics.about_largest_request([for_admins, *DEVICES], Ledger(), SIZES)
    assert values(largest, "mode")["whole",] == 1


def test_what_claims_and_containers_have_but_not_administrators() -> None:
    family = card_metrics.about_allocations(granted(ALL_HELD), SIZES)
    assert values(family, "pci_bus_id", "device", "mode", "profile", "claim", "holder") == {
        (str(FIRST), "gcu0", "shared", "", "slices", ""): 2,
        (str(SECOND), "gcu1", "drs", "3g.23gb", "instance", ""): 3,
        (str(THIRD), "", "whole", "", "", str(THIRD)): 1,  # a card that is not known any more
    }


def test_the_containers_that_use_it() -> None:
    devices = {"enflame.com/gcu": frozenset({str(PLUGIN.devices[0])})}
    family = card_metrics.about_containers(
        granted(ALL_HELD),
        [
            ContainerResources("team", "p", "one", claims=frozenset({"slices", "admin"})),
            ContainerResources("team", "q", "two", claims=frozenset({"slices"})),
            ContainerResources("elsewhere", "r", "main", claims=frozenset({"instance"})),
            ContainerResources("plugins", "s", "main", devices),
        ],
    )
    names = ("pci_bus_id", "device", "mode", "profile", "namespace", "pod", "container", "claim")
    assert set(values(family, *names)) == {
        (str(FIRST), "gcu0", "shared", "", "team", "p", "one", "slices"),
        (str(FIRST), "gcu0", "shared", "", "team", "q", "two", "slices"),
        (str(SECOND), "gcu1", "drs", "3g.23gb", "team", "", "", "instance"),  # an init container
        (str(THIRD), "", "whole", "", "plugins", "s", "main", ""),
    }
    unanswered = card_metrics.about_containers(granted(ALL_HELD), ())
    assert set(values(unanswered, "namespace", "pod", "container", "claim")) == {
        ("team", "", "", "slices"),
        ("team", "", "", "instance"),
        ("", "", "", ""),
    }


def test_the_largest_request() -> None:
    largest = card_metrics.about_largest_request(DEVICES, ledger(*TWO_CLAIMS), SIZES)
    assert values(largest, "mode") == {("whole",): 1, ("shared",): 6, ("drs",): 6}
    found = ledger(*TWO_CLAIMS, (ref("whole"), hold(2)))
    largest = card_metrics.about_largest_request(DEVICES, found, SIZES)
    assert values(largest, "mode") == {("whole",): 0, ("shared",): 4, ("drs",): 3}


def test_slices_that_were_handed_on_are_left_once() -> None:
    """From an init container to the next container of its pod, as the kubelet does."""
    slices = [PluginDevice(FIRST, Mode.SHARED, at) for at in range(3)]
    found = ledger(
        *(
            (
                ContainerAllocation(tuple(slices[:count]), total=6, answer="a"),
                hold(0, mode=Mode.SHARED, consumed={"slices": str(count)}),
            )
            for count in (2, 3)
        )
    )
    largest = card_metrics.about_largest_request(DEVICES[:3], found, SIZES)
    assert values(largest, "mode")["shared",] == 3


@pytest.mark.parametrize("stripped", [False, True], ids=["1.36", "before 1.36"])
def test_a_size_that_is_left_and_that_no_profile_has_is_no_request(*, stripped: bool) -> None:
    """Of six one is held. A request of 4 or 5 would be rounded up to 6."""
    device = drs_device(card(FIRST, 0), TABLE, allocator="controller")
    if stripped:
        device.pop("allowMultipleAllocations")
        device["capacity"] = {"size": {"value": "6"}}
    one = hold(0, mode=Mode.DRS, consumed={"size": "1"}, instance=Instance(0, "1g.6gb", "u"))
    found = ledger((ref("one"), one))
    sizes = card_metrics.sizes_of([device])
    largest = card_metrics.about_largest_request([device], found, sizes)
    assert values(largest, "mode") == {("drs",): 3}


def test_cards_with_a_problem_serve_no_request() -> None:
    ill = {"key": "gcu.enflame.com/unhealthy", "value": "lost", "effect": "NoSchedule"}
    devices = [each | {"taints": [ill]} for each in DEVICES]
    largest = card_metrics.about_largest_request(devices, Ledger(), SIZES)
    assert set(values(largest, "mode").values()) == {0}
    problems = card_metrics.about_problems(devices)
    assert values(problems, "problem", "value", "pci_bus_id") == {
        ("unhealthy", "lost", str(address)): 1 for address in (FIRST, SECOND, THIRD)
    }


def collected(
    devices: DevicesSource, journal: Callable[[], Ledger]
) -> dict[str, Mapping[tuple[str, ...], float]]:
    """The values by all labels of each metric that has any."""
    played = SimpleNamespace(
        cards=SimpleNamespace(latest={}), journal=SimpleNamespace(snapshot=journal)
    )
    used = [ContainerResources("team", "p", "main", claims=frozenset({"a"}))]
    collector = card_metrics.NodeCollector(
        context=cast("AgentContext", played), devices=devices, containers=lambda: used
    )
    return {
        each.name: values(each, *each.samples[0].labels)
        for each in collector.collect()
        if each.samples
    }


def test_what_is_published_and_held() -> None:
    ill = {"key": "gcu.enflame.com/unhealthy", "value": "rma", "effect": "NoExecute"}
    changing = {"key": "gcu.enflame.com/changing", "effect": "NoSchedule"}
    ours = {"key": TAINT_ALLOCATED_BY, "value": "controller", "effect": "NoSchedule"}
    devices: list[Object] = [
        {"name": name, "taints": [ours, *taints]}
        for name, taints in {
            "whole-0000-0d-00-0": [],
            "whole-0000-0e-00-0": [ill],
            "shared-0000-0e-00-0": [ill, changing],
            "of-another-version": [],
        }.items()
    ]
    begun = record(ClaimStep.PREPARE_STARTED, ref("b"), (hold(2),))
    found = ledger((ref("a"), hold(0)), (ref("c"), hold(1))).apply(begun)
    told = collected(lambda: devices, lambda: found)
    assert {name: told.pop(name) for name in [*told] if name.startswith("gcu_agent_")} == {
        "gcu_agent_devices": {
            ("whole", "healthy"): 1,
            ("whole", "unhealthy"): 1,
            ("shared", "unhealthy"): 1,
        },
        "gcu_agent_device_taints": {
            ("gcu.enflame.com/unhealthy", "rma", "NoExecute"): 2,
            ("gcu.enflame.com/changing", "", "NoSchedule"): 1,
        },
        "gcu_agent_claims": {
            ("prepared",): 2,
            ("intent",): 1,
            ("unpreparing",): 0,
            ("released",): 0,
        },
        "gcu_agent_prepared_devices": {("whole",): 2},
    }
    assert {name: len(samples) for name, samples in told.items()} == {
        "gcu_card_problem": 2,
        "gcu_card_size": 3,
        "gcu_card_allocated": 2,
        "gcu_card_container_info": 2,
        "gcu_node_largest_request": 2,
    }


def unreadable() -> Any:
    raise JournalError("the disk is gone")


@pytest.mark.parametrize(
    ("devices", "shown"),
    [
        (lambda: DEVICES, {"gcu_agent_devices", "gcu_card_size"}),
        (unreadable, set()),
    ],
    ids=["what is in it", "what is offered, which can depend on it"],
)
def test_a_journal_that_cannot_be_read_hides(devices: DevicesSource, shown: set[str]) -> None:
    assert collected(devices, unreadable).keys() == shown
