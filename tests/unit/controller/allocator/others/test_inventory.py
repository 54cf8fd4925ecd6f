"""What other drivers publish, as slices come, change and go."""

from __future__ import annotations

from typing import Final

import pytest

from controller.allocator.device import Device
from controller.allocator.device_request import DeviceRequest, device_request
from controller.allocator.others import inventory as module
from controller.allocator.others.inventory import DevicesUnknown, OtherInventory
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import PackingChoice
from dra_driver.selector.selector import Selectors
from tests.control_plane.interfaces import CPU, NET, RDMA, interface, other_slice, processor
from tests.unit.controller.allocator.build import taint_rule

SELECTORS: Final = Selectors()
UNKNOWN: Final = "unknown"
CONDITIONS: Final = ["ready"]


def asked(*expressions: str) -> DeviceRequest:
    of_driver = f'device.driver == "{NET}"'
    return device_request(
        (of_driver, *expressions), 1, (), "[]", admin_access=False, packing=PackingChoice()
    )


def buses(found: OtherInventory, node: str, *expressions: str) -> list[int] | str:
    """Of the interfaces that the request selects on the node."""
    try:
        devices = found.select(node, asked(*expressions), SELECTORS)
    except DevicesUnknown:
        return UNKNOWN
    return [int(device.id.name.split("-")[2], 16) for device in devices]


def part(name: str, *devices: Object, generation: int = 1, of: int = 1, node: str = "a") -> Object:
    """A slice of that name, of a pool of `of` slices."""
    made = other_slice(node, devices, count=of)
    made["metadata"]["name"] = name
    made["spec"]["pool"] |= {"name": "pool", "generation": generation}
    return made


def inventory(*slices: Object) -> OtherInventory:
    found = OtherInventory()
    for each in slices:
        found.put(each)
    return found


def test_slices_come_by_name_and_devices_as_they_are_listed() -> None:
    found = inventory(part("2", interface(1), of=2), part("1", interface(5), interface(3), of=2))
    assert buses(found, "a") == [5, 3, 1]
    assert buses(found, "b") == []


def test_pools_come_by_driver_and_name_and_those_with_conditions_last() -> None:
    late = other_slice("a", [interface(0, bindingConditions=CONDITIONS), interface(1)])
    early = other_slice("a", [interface(2)])
    early["spec"]["pool"]["name"], early["metadata"]["name"] = "z", "z"
    assert buses(inventory(late, early), "a") == [2, 0, 1]


def test_a_pool_grows_shrinks_and_goes() -> None:
    found = inventory(part("1", interface(0), of=2))
    assert buses(found, "a") == UNKNOWN
    second = part("2", interface(1), of=2)
    found.put(second)
    assert buses(found, "a") == [0, 1]
    found.remove(second)
    assert buses(found, "a") == UNKNOWN
    found.put(part("1", interface(0)))
    assert buses(found, "a") == [0]
    found.remove(part("1"))
    assert buses(found, "a") == []
    assert found.nodes_of((NET, "pool")) == []


def test_the_newest_generation_counts() -> None:
    found = inventory(part("1", interface(0)), part("2", interface(1), generation=2, of=2))
    assert buses(found, "a") == UNKNOWN
    found.put(part("1", interface(0), generation=2, of=2))
    assert buses(found, "a") == [0, 1]


def test_a_pool_of_two_nodes_is_not_known_until_it_is_of_one() -> None:
    other = part("2", interface(1), of=2, node="b")
    found = inventory(part("1", interface(0), of=2), other)
    assert (buses(found, "a"), buses(found, "b")) == (UNKNOWN, UNKNOWN)
    found.remove(other)
    found.put(part("1", interface(0)))
    assert (buses(found, "a"), buses(found, "b")) == ([0], [])


def test_devices_of_several_nodes_count_where_they_may_serve() -> None:
    reached = other_slice("far", [interface(9)], allNodes=True)
    found = inventory(other_slice("a", [interface(0)]), reached)
    assert buses(found, "a") == UNKNOWN
    assert buses(found, "a", f'device.attributes["{NET}"].ifName == "eth0"') == [0]
    found.remove(reached)
    assert buses(found, "a") == [0]


def test_a_pool_that_cannot_be_read_costs_no_other_driver() -> None:
    broken = other_slice("a", [{"name": "x", "capacity": {"cpu": {"value": "?"}}}], CPU)
    assert buses(inventory(other_slice("a", [interface(0)]), broken), "a") == [0]


def test_watchers_hear_of_nodes() -> None:
    found = inventory()
    changed = found.watch()

    def heard() -> set[str]:
        names = set(changed)
        changed.clear()
        return names

    first = other_slice("a", [interface(0)])
    found.put(first)
    found.put(other_slice("b", [interface(0)]))
    assert heard() == {"a", "b"}
    found.put(first)
    assert heard() == set()
    found.put(other_slice("far", [interface(9)], allNodes=True))
    assert heard() == {"a", "b"}
    rule = taint_rule("r", {"driver": NET}, {"key": "down", "effect": "NoSchedule"})
    for expected in ({"a", "b"}, set()):
        found.set_rule("r", rule)
        assert heard() == expected
    found.set_rule("r", None)
    assert heard() == {"a", "b"}
    found.remove(first)
    assert heard() == {"a"}


def test_only_some_nodes_stay_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_READ", 2)
    found = inventory(*(other_slice(name, [interface(n)]) for n, name in enumerate("abc")))
    assert [buses(found, name) for name in "abcabc"] == [[0], [1], [2]] * 2
    assert [buses(found, "a", RDMA) for _ in range(2)] == [[0], [0]]


def test_other_drivers_are_not_read_for_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class names the driver."""
    found = inventory(other_slice("a", [interface(0)]), other_slice("a", [processor(0)] * 100, CPU))
    parse, parsed = Device.parse_other, list[str]()

    def note(driver: str, *given: object) -> object:
        parsed.append(driver)
        return parse(driver, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Device, "parse_other", note)
    assert buses(found, "a") == [0]
    assert parsed == [NET]
