"""Which writes publish a node's devices."""

from __future__ import annotations

from typing import Any

from dra_driver.agent.changes import keep_held, plan_changes
from dra_driver.agent.slices import dropped_fields
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress

NODE = {"metadata": {"name": "n1", "uid": "u1"}}


def device(bus: int) -> dict[str, Any]:
    return {"name": f"whole-0000-{bus:02x}-00-0", "taints": []}


def stored(slices: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    return [{**s, "metadata": {**s["metadata"], "resourceVersion": "7"}} for s in slices]


def test_nothing_to_do_when_nothing_changed() -> None:
    current = stored(plan_changes(NODE, [device(1)], []).create)
    assert not plan_changes(NODE, [device(1)], current)


def test_a_change_of_one_slice_keeps_the_generation() -> None:
    current = stored(plan_changes(NODE, [device(1)], []).create)
    changes = plan_changes(NODE, [device(1), device(2)], current)
    assert [s["spec"]["pool"]["generation"] for s in changes.update] == [1]
    assert changes.update[0]["metadata"]["resourceVersion"] == "7"
    assert not changes.create
    assert not changes.delete


def test_a_change_of_the_number_of_slices_takes_the_next_generation() -> None:
    current = stored(plan_changes(NODE, [device(1)], []).create)
    changes = plan_changes(NODE, [device(bus) for bus in range(65)], current)
    assert {s["spec"]["pool"]["generation"] for s in changes.desired} == {2}
    assert (len(changes.update), len(changes.create)) == (1, 1)
    shrunk = plan_changes(NODE, [device(1)], stored(changes.desired))
    assert len(shrunk.delete) == 1
    assert shrunk.desired[0]["spec"]["pool"] == {
        "name": "gcu.enflame.com/n1",
        "generation": 3,
        "resourceSliceCount": 1,
    }


def test_a_held_device_whose_card_is_lost_stays_tainted() -> None:
    current = stored(plan_changes(NODE, [device(1), device(2)], []).create)
    held = frozenset({PciAddress.parse("0000:02:00.0")})
    kept = keep_held([], current, held)
    assert [d["name"] for d in kept] == ["whole-0000-02-00-0"]
    assert [(t["key"], t["value"]) for t in kept[0]["taints"]] == [(TAINT_UNHEALTHY, "lost")]


def test_what_a_server_dropped_is_named_by_its_path() -> None:
    sent = {"devices": [{"name": "a", "taints": [{"key": "k"}]}]}
    assert dropped_fields(sent, {"devices": [{"name": "a"}], "added": 1}) == ["devices[0].taints"]
    assert dropped_fields(sent, {**sent, "added": 1}) == []
