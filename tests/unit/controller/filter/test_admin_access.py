"""Administrative access is for whole cards, beside whoever holds them."""

from __future__ import annotations

import pytest

from dra_driver.kube.errors import Invalid
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, results
from tests.unit.controller.allocator.build import (
    ANY,
    ANY_CLASS,
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.allocator.decide import DRS, MODES, SHARED, names
from tests.unit.controller.world import World, pod


def one_card() -> World:
    world = World(pool("a", [device(mode, 0) for mode in MODES]))
    world.put(DEVICE_CLASSES, ANY_CLASS)
    return world


def ask(world: World, asked: Object, name: str = "c") -> list[str]:
    world.put(RESOURCE_CLAIMS, claim(name, [asked]))
    world.put(PODS, pod(f"pod-{name}", name))
    return world.run_until_idle()


HOLDERS: dict[str, Object] = {
    "a whole card": allocated("h", "a", *names("whole", 0)),
    "a share": allocated("h", "a", *names("shared", 0), consumed={"slices": "6"}),
    "an instance": allocated("h", "a", *names("drs", 0), consumed={"size": "6"}),
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_a_card_that_is_held(holder: Object) -> None:
    world = one_card()
    world.put(RESOURCE_CLAIMS, holder)
    ask(world, request(adminAccess=True))
    [result] = results(world.claim("c"))
    assert (result.device, result.admin_access) == (names("whole", 0)[0], True)


def test_it_takes_nothing_from_others() -> None:
    world = one_card()
    ask(world, request(adminAccess=True), "admin")
    ask(world, request(), "user")
    assert world.node_of("admin") == world.node_of("user") == "a"


REFUSED = {
    "shares": (request(cls=SHARED, adminAccess=True), "shared-gcu.enflame.com has shared devices"),
    "instances": (request(cls=DRS, adminAccess=True), "drs-gcu.enflame.com has drs devices"),
    "somebody's own class": (
        request(cls=ANY, adminAccess=True, allocationMode="All"),
        "shared-0000-00-00-0 of node a is a shared device",
    ),
}


@pytest.mark.parametrize(("asked", "words"), REFUSED.values(), ids=REFUSED)
def test_what_it_is_not_for_is_refused_before_anything_is_written(
    asked: Object, words: str
) -> None:
    world = one_card()
    assert ask(world, asked) == []
    told = f"claim default/c, request gcu: adminAccess is for whole cards, and {words}; request"
    assert {each.partition(": ")[0] for each in world.recorder.notes} == {
        "Pod pod-c",
        "ResourceClaim c",
    }
    assert all(told in each for each in world.recorder.notes)


def test_a_namespace_that_lost_its_label_is_reported() -> None:
    world = one_card()
    world.api.write_errors = [Invalid("admin access to devices requires the label", status=422)]
    ask(world, request(adminAccess=True))
    assert world.recorder.notes == [
        f"{each}: admin access to devices requires the label"
        for each in ("Pod pod-c", "ResourceClaim c")
    ]
    world.after(60.0)
    assert world.node_of("c") == "a"
