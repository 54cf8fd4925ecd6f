"""Which devices a DeviceTaintRule taints (upstream: resourceslice/tracker, 1.37.1)."""

from __future__ import annotations

import pytest

from controller.allocator.device import DeviceId
from controller.allocator.inventory import Inventory
from controller.allocator.taints import Taint, TaintRule
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from tests.unit.controller.allocator.build import device, pool, taint_rule

A0, A1, B0 = (
    DeviceId(f"{DRIVER}/{node}", f"whole-0000-0{bus}-00-0")
    for node, bus in (("a", 0), ("a", 1), ("b", 0))
)
ALL = {A0, A1, B0}
SLICES = [*pool("a", [device("whole", 0), device("whole", 1)]), *pool("b", [device("whole", 0)])]
BROKEN = {"key": "example.com/broken", "value": "fan", "effect": "NoSchedule"}


def tainted(inventory: Inventory) -> set[DeviceId]:
    return {
        each.id
        for node in ("a", "b")
        for each in inventory.devices_of(node)
        if any(one.rule for one in each.kind.taints)
    }


SELECTORS: dict[str, tuple[Object | None, set[DeviceId]]] = {
    "a missing selector selects nothing": (None, set()),
    "an empty one selects all devices": ({}, ALL),
    "the driver": ({"driver": DRIVER}, ALL),
    "another driver": ({"driver": "gpu.example.com"}, set()),
    "a pool": ({"pool": A0.pool}, {A0, A1}),
    "a device of every pool": ({"device": A0.name}, {A0, B0}),
    "a device of a pool": ({"driver": DRIVER, "pool": A0.pool, "device": A1.name}, {A1}),
    "a device of another pool": ({"pool": B0.pool, "device": A1.name}, set()),
    "another driver's pool of the name": ({"driver": "gpu.example.com", "pool": A0.pool}, set()),
}


@pytest.mark.parametrize(("selector", "selected"), SELECTORS.values(), ids=SELECTORS)
def test_selected(selector: Object | None, selected: set[DeviceId]) -> None:
    inventory = Inventory.of(SLICES)
    assert tainted(inventory) == set()
    inventory.set_rule("rule", TaintRule.parse(taint_rule("rule", selector, BROKEN)))
    assert tainted(inventory) == selected
    inventory.set_rule("rule", None)
    assert tainted(inventory) == set()


def test_taints_of_rules_follow_the_published_ones() -> None:
    inventory = Inventory()
    for name in ("second", "first"):
        rule = taint_rule(name, {}, BROKEN | {"value": name})
        inventory.set_rule(name, TaintRule.parse(rule))
    inventory.put(pool("a", [device("whole", 0)])[0])
    [found] = inventory.devices_of("a")
    assert found.kind.taints[1:] == tuple(
        Taint(BROKEN["key"], name, BROKEN["effect"], name) for name in ("first", "second")
    )


def test_a_changed_rule_selects_what_it_says_now() -> None:
    inventory = Inventory.of(SLICES)
    inventory.refresh()
    changed = inventory.watch()
    for selector in ({"pool": A0.pool}, {"pool": B0.pool}):
        inventory.set_rule("rule", TaintRule.parse(taint_rule("rule", selector, BROKEN)))
    assert tainted(inventory) == {B0}
    assert changed == {"a", "b"}


def test_a_rule_without_a_change_changes_no_node() -> None:
    inventory = Inventory.of(SLICES)
    rule = TaintRule.parse(taint_rule("rule", {}, BROKEN))
    inventory.set_rule("rule", rule)
    inventory.refresh()
    changed = inventory.watch()
    inventory.set_rule("rule", rule)
    inventory.refresh()
    assert changed == set()
