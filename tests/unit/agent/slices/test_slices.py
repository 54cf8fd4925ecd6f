"""The form of slices, and what a server dropped of them."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.agent.slices.slices import (
    MAX_DEVICES,
    SliceForm,
    desired_slices,
    dropped_fields,
    slice_name,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.hidden_device import hidden_name
from tests.unit.agent.objects import NODE, device


def test_a_slice_as_the_api_wants_it() -> None:
    assert desired_slices(NODE, [device(1)], 3) == [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": "n1-gcu.enflame.com-000",
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": "n1",
                        "uid": "node-uid",
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "driver": "gcu.enflame.com",
                "nodeName": "n1",
                "pool": {
                    "name": "gcu.enflame.com/n1",
                    "generation": 3,
                    "resourceSliceCount": 1,
                },
                "devices": [device(1)],
            },
        }
    ]


def of_model(*models: str) -> list[Object]:
    return [
        device(bus) | {"attributes": {"model": {"string": model}}}
        for bus, model in enumerate(models)
    ]


@pytest.mark.parametrize(
    ("models", "labels"),
    [
        (["S60", "S60"], {"gcu.enflame.com/model": "S60"}),
        (["S60", "T20"], None),
        (["Enflame S60"], None),
        (["S" * 64], None),
        ([], None),
    ],
    ids=str,
)
def test_the_label_is_the_model_of_all_cards(
    models: list[str], labels: dict[str, str] | None
) -> None:
    """Without one there is no field: servers store no empty map."""
    [only] = desired_slices(NODE, of_model(*models), 1)
    assert only["metadata"].get("labels") == labels


def test_an_empty_slice_has_no_devices_at_all() -> None:
    [only] = desired_slices(NODE, [], 1)
    assert "devices" not in only["spec"]


def test_counter_sets_are_in_slices_of_their_own() -> None:
    devices = [
        {
            "name": f"{mode}-{card}",
            "taints": [],
            "consumesCounters": [
                {"counterSet": f"card-{card:02}", "counters": {"card": {"value": "1"}}}
            ],
        }
        for card in range(10)
        for mode in ("whole", "shared")
    ]
    first, second, third = desired_slices(NODE, devices, 1)
    stored = [{name: each[name] for name in ("name", "consumesCounters")} for each in devices]
    assert first["spec"]["devices"] == stored
    assert "sharedCounters" not in first["spec"]
    sets = [*second["spec"]["sharedCounters"], *third["spec"]["sharedCounters"]]
    assert [len(each["spec"]["sharedCounters"]) for each in (second, third)] == [8, 2]
    assert sets == [
        {"name": f"card-{card:02}", "counters": {"card": {"value": "1"}}} for card in range(10)
    ]
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in (first, second, third)} == {3}
    assert third["metadata"]["name"] == "n1-gcu.enflame.com-002"


@pytest.mark.parametrize(("devices", "sizes"), [(64, [64]), (65, [64, 1]), (130, [64, 64, 2])])
def test_devices_stand_in_their_order(devices: int, sizes: list[int]) -> None:
    assert MAX_DEVICES == 64
    names = [f"d{number}" for number in range(devices)]
    made = desired_slices(NODE, [{"name": name} for name in names], 1)
    assert [len(each["spec"]["devices"]) for each in made] == sizes
    assert [d["name"] for each in made for d in each["spec"]["devices"]] == names
    in_order = sorted(made, key=lambda each: str(each["metadata"]["name"]))
    assert in_order == made
    [hidden] = desired_slices(NODE, [{"name": name} for name in names], 1, SliceForm.HIDDEN)
    assert [each["name"] for each in hidden["spec"]["devices"]] == names


def node(name: str, uid: str) -> Object:
    return {"metadata": {"name": name, "uid": uid}}


def test_names_of_long_nodes_fit_and_differ() -> None:
    start = "n" * 240
    names = {slice_name(node(f"{start}-{each}", f"{each}2345678-9"), 1) for each in "ab"}
    assert names == {f"{'n' * 224}-{each}2345678-gcu.enflame.com-001" for each in "ab"}
    assert {len(name) for name in names} == {253}
    dotted = slice_name(node(f"{'n' * 223}.{start}"[:253], "12345678-9"), 0)
    assert dotted == f"{'n' * 223}-12345678-gcu.enflame.com-000"
    assert slice_name(node("n" * 233, "1"), 0) == f"{'n' * 233}-gcu.enflame.com-000"


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        ({"devices": [{"name": "a", "taints": [{"key": "k"}]}]}, []),
        ({"devices": [{"name": "a", "taints": [{"key": "k", "timeAdded": 1}]}], "added": 1}, []),
        ({"devices": [{"name": "a"}]}, ["devices[0].taints"]),
        ({"devices": [{"name": "a", "taints": [{"key": "other"}]}]}, ["devices[0].taints[0].key"]),
        ({"devices": [{"name": "a", "taints": []}]}, ["devices[0].taints"]),
        ({"devices": {}}, ["devices"]),
        ({"devices": ["a"]}, ["devices[0]"]),
        ({}, ["devices"]),
    ],
    ids=["same", "added", "dropped", "altered", "emptied", "other type", "no mapping", "all gone"],
)
def test_what_a_server_dropped_is_named_by_its_path(kept: Any, dropped: list[str]) -> None:
    sent = {"devices": [{"name": "a", "taints": [{"key": "k"}]}]}
    assert dropped_fields(sent, kept) == dropped


def test_hidden_slices_have_names_from_the_node_alone() -> None:
    assert hidden_name("n1") == "n1-gcu.enflame.com-hidden"
    long = {hidden_name(f"{'n' * 240}{each}") for each in "ab"}
    assert len(long) == 2
    assert all(len(name) <= 253 and name.endswith("-gcu.enflame.com-hidden") for name in long)
    assert hidden_name("n" * 230) == f"{'n' * 230}-gcu.enflame.com-hidden"
