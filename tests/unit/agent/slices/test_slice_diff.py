"""Which writes publish a node's devices."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from dra_driver.agent.slices.slice_diff import SliceDiff, diff_slices
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import TAINT_UNHEALTHY
from tests.unit.agent.objects import NODE, device, published, stored

MANY = [device(bus) for bus in range(65)]
LOST = {"key": TAINT_UNHEALTHY, "value": "lost", "effect": "NoSchedule"}


def writes(changes: SliceDiff) -> list[str]:
    """Each write in its order, as ``<verb> <index of the slice>@<generation>``."""
    made = [("delete", changes.delete), ("update", changes.update), ("create", changes.create)]
    return [
        f"{verb} {int(each['metadata']['name'][-3:])}@{each['spec']['pool']['generation']}"
        for verb, slices in made
        for each in slices
    ]


def altered(current: tuple[Object, ...], **spec: Any) -> tuple[Object, ...]:
    """The first of the slices with another spec."""
    first, *others = deepcopy(current)
    first["spec"] |= spec
    return (first, *others)


def with_owner(uid: str) -> tuple[Object, ...]:
    [found] = deepcopy(published(device(1)))
    found["metadata"]["ownerReferences"][0]["uid"] = uid
    return (found,)


def with_labels(**labels: str) -> tuple[Object, ...]:
    """A slice as an earlier version of the driver made it, with labels of somebody's."""
    [found] = deepcopy(published(device(1) | {"attributes": {"model": {"string": "S60"}}}))
    found["metadata"]["labels"] = labels
    return (found,)


def test_the_label_is_written_to_slices_without_it() -> None:
    labelled = device(1) | {"attributes": {"model": {"string": "S60"}}}
    changes = diff_slices(NODE, [labelled], with_labels(team="a"))
    assert writes(changes) == ["update 0@1"]
    [written] = changes.update
    assert written["metadata"]["labels"] == {"gcu.enflame.com/model": "S60"}
    assert not diff_slices(NODE, [labelled], with_labels(**{"gcu.enflame.com/model": "S60"}))


def with_time(current: tuple[Object, ...]) -> tuple[Object, ...]:
    found = deepcopy(current)
    found[0]["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z"
    return found


ONE = published(device(1))
TWO_SLICES = published(*MANY)


@pytest.mark.parametrize(
    ("devices", "current", "expected"),
    [
        pytest.param([], (), ["create 0@1"], id="no card is one empty slice"),
        pytest.param([device(1)], (), ["create 0@1"], id="nothing there yet"),
        pytest.param(MANY, (), ["create 0@1", "create 1@1"], id="more than one slice holds"),
        pytest.param([device(1)], ONE, [], id="all there"),
        pytest.param([], published(), [], id="empty slice there"),
        pytest.param(MANY, TWO_SLICES, [], id="two slices there"),
        pytest.param([device(1)], with_time(ONE), [], id="the server added a taint's time"),
        pytest.param([device(1), device(2)], ONE, ["update 0@1"], id="one more device"),
        pytest.param(
            [device(1, taints=[LOST])], ONE, ["update 0@1"], id="another taint of a device"
        ),
        pytest.param([device(1)], altered(ONE, devices=[]), ["update 0@1"], id="somebody emptied"),
        pytest.param([device(1)], with_owner("another"), ["update 0@1"], id="another node by now"),
        pytest.param([*MANY[:-1], device(99)], TWO_SLICES, ["update 1@1"], id="one of two slices"),
        pytest.param(
            [device(99), *MANY[1:-1], device(99)],
            TWO_SLICES,
            ["update 0@2", "update 1@2"],
            id="both of two slices",
        ),
        pytest.param(MANY, ONE, ["update 0@2", "create 1@2"], id="one slice becomes two"),
        pytest.param([device(0)], TWO_SLICES, ["delete 1@1", "update 0@2"], id="two become one"),
        pytest.param(MANY, TWO_SLICES[:1], ["update 0@2", "create 1@2"], id="second one deleted"),
        pytest.param(MANY, TWO_SLICES[1:], ["update 1@2", "create 0@2"], id="first one deleted"),
    ],
)
def test_the_writes(
    devices: list[Object], current: tuple[Object, ...], expected: list[str]
) -> None:
    changes = diff_slices(NODE, devices, current)
    assert writes(changes) == expected
    assert bool(changes) == bool(expected)
    after = stored(changes.desired)
    assert not diff_slices(NODE, devices, after)
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in after} == {len(after)}
    assert len({each["spec"]["pool"]["generation"] for each in after}) == 1


def test_an_update_is_of_just_what_was_seen() -> None:
    [updated] = diff_slices(NODE, [device(2)], ONE).update
    seen = ONE[0]["metadata"]
    assert (updated["metadata"]["uid"], updated["metadata"]["resourceVersion"]) == (
        seen["uid"],
        seen["resourceVersion"],
    )


def test_a_taint_that_stays_keeps_its_time() -> None:
    changes = diff_slices(NODE, [device(1, taints=[LOST, {"key": "k"}])], with_time(ONE))
    [devices] = [each["spec"]["devices"] for each in changes.update]
    assert devices[0]["taints"] == [LOST, {"key": "k", "timeAdded": "2026-01-01T00:00:00Z"}]
    assert "timeAdded" not in str(changes.desired)


def test_a_generation_that_has_no_next_one_is_left() -> None:
    """Whoever had the agent's token once could otherwise keep the node from publishing for good."""
    last = 2**63 - 1
    spent = deepcopy(TWO_SLICES)
    for each in spent:
        each["spec"]["pool"]["generation"] = last
    changes = diff_slices(NODE, [device(1)], spent)
    assert writes(changes) == [f"delete 0@{last}", f"delete 1@{last}", "create 0@2"]


@pytest.mark.parametrize(
    ("name", "creates"),
    [("n1-stray", 0), ("n1-gcu.enflame.com-000", 1)],
    ids=["another name", "our name"],
)
def test_a_slice_that_is_none_of_the_pool_goes(name: str, creates: int) -> None:
    """Its pool cannot be changed, and its generation is another pool's."""
    [stray] = deepcopy(ONE)
    stray["metadata"]["name"] = name
    stray["spec"]["pool"] |= {"name": "gcu.enflame.com/n1-old", "generation": 9}
    own = [each for each in ONE if each["metadata"]["name"] != name]
    changes = diff_slices(NODE, [device(1)], (*own, stray))
    assert [each["metadata"]["name"] for each in changes.delete] == [name]
    assert len(changes.create) == creates
    assert {each["spec"]["pool"]["generation"] for each in changes.desired} == {2}
