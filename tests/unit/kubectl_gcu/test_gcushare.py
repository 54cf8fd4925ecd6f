"""`kubectl gcu inspect -o gcushare` prints what the vendor's ``inspect.sh`` does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from dra_driver.kube.resources import NODES, PODS
from dra_driver.model.devices.node_cards import HeldInstance, Hold, render_cards
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from kubectl_gcu.gcushare import as_gcushare
from kubectl_gcu.inventory.nodes import inventory
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.inventory.inspected import (
    ANNOTATED,
    BY_CLAIMS,
    BY_LIMITS,
    annotated,
    claim,
    pod,
    result,
)
from tests.unit.kubectl_gcu.server import Server

INSTANCE: Final = {
    "allocated": True,
    "request": 3,
    "profileID": "1",
    "profileName": "3g.20gb",
    "instanceID": "2",
    "instanceUUID": "u",
}


def printed(state: Any, mode: Mode) -> Any:
    nodes, _ = inventory(state)
    [node] = json.loads(as_gcushare(nodes, mode, one=False))
    return node


def test_slices_and_instances_are_apart() -> None:
    """A card that is in the other mode, or is held as a whole, is in neither total."""
    in_use = structs.replace(ANNOTATED[1], mode=Mode.SHARED, slices=6, held=(Hold("", "", 2),))
    whole = structs.replace(
        ANNOTATED[1], address=PciAddress(0, 4, 0, 0), minor=6, slices=6, mode=Mode.WHOLE
    )
    cards = (ANNOTATED[0], in_use, ANNOTATED[2], whole)
    state = replace(BY_LIMITS, nodes=(annotated("b", render_cards(cards)),))
    shared, drs = printed(state, Mode.SHARED), printed(state, Mode.DRS)
    amounts = ("totalGCU", "usedGCU", "availableGCU")
    assert [shared[each] for each in amounts] == [12, 2, 10]
    assert [drs[each] for each in amounts] == [6, 4, 2]
    assert {name: each.get("virt") for name, each in shared["devices"].items()} == {
        "4": "Shared",
        "5": None,
    }
    assert {name: each["virt"] for name, each in drs["devices"].items()} == {"3": "DRS"}


def test_an_instance_has_the_numbers_of_the_vendors_tool() -> None:
    [held, _] = printed(BY_LIMITS, Mode.DRS)["devices"]["3"]["pods"]
    assert held["containers"] == {"main": INSTANCE}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"profile": "3g.20gb", "profileID": 1, "instanceID": 2}, id="of the device"),
        pytest.param(
            {
                "shares": [
                    {"request": "other", "profile": "1g.6gb", "profileID": 0, "instanceID": 1},
                    {"request": "gcu", "profile": "3g.20gb", "profileID": 1, "instanceID": 2},
                ]
            },
            id="of a share, before 1.36",
        ),
    ],
)
def test_an_instance_of_a_claim(data: dict[str, Any]) -> None:
    held = claim("one", result("drs", 2, consumedCapacity={"size": "3"}), data={"minor": 7, **data})
    [user] = printed(replace(BY_CLAIMS, claims=(held,)), Mode.DRS)["devices"]["7"]["pods"]
    numbers = {name: value for name, value in INSTANCE.items() if name != "instanceUUID"}
    assert user["containers"] == {"main": numbers}


def test_a_pod_of_two_containers_is_one_entry() -> None:
    two = (
        Hold("uid-one", "main", 3, HeldInstance("3g.20gb", 1, 2, "u")),
        Hold("uid-one", "side", 1),
    )
    card = structs.replace(ANNOTATED[0], held=two)
    state = replace(BY_LIMITS, nodes=(annotated("b", render_cards((card,))),))
    [user] = printed(state, Mode.DRS)["devices"]["3"]["pods"]
    assert (user["name"], user["usedGCU"]) == ("one-pod", 4)
    assert user["containers"] == {"main": INSTANCE, "side": {"allocated": True, "request": 1}}


def test_each_container_has_what_its_requests_got() -> None:
    """The container `main` names no request, and so uses all."""
    user = pod("one")
    user["spec"]["containers"][1]["resources"] = {"claims": [{"name": "gcu", "request": "gcu-1"}]}
    shares = [
        result("shared", 1, request=f"gcu-{i}", consumedCapacity={"slices": slices})
        for i, slices in enumerate("32")
    ]
    state = replace(BY_CLAIMS, claims=(claim("one", *shares, data={"minor": 5}),), pods=(user,))
    [found] = printed(state, Mode.SHARED)["devices"]["5"]["pods"]
    assert found["usedGCU"] == 5
    assert found["containers"] == {
        "main": {"allocated": True, "request": 5},
        "side": {"allocated": True, "request": 2},
    }


@pytest.mark.parametrize(
    ("form", "total"), [("gcushare", 6), ("gcushare-drs", 12)], ids=["slices", "instances"]
)
def test_one_node_is_an_object(form: str, total: int) -> None:
    """As of the vendor's ``inspect.sh --node``; without a node it is a list."""
    nodes = (annotated("b", render_cards(ANNOTATED)), annotated("c", render_cards(ANNOTATED)))
    server = Server(*((NODES, node) for node in nodes), (PODS, pod("one")))

    def inspected(*arguments: str) -> Any:
        code, out, _ = gcu(server, "inspect", "-o", form, *arguments)
        assert code == 0
        return json.loads(out)

    node = inspected("b")
    assert (node["name"], node["totalGCU"]) == ("b", total)
    assert [each["name"] for each in inspected()] == ["b", "c"]
