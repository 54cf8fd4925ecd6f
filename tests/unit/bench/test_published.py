"""What the drivers of `make bench-cluster` publish."""

from __future__ import annotations

from bench.published import OURS, OURS_COUNTED, TWINS


def test_ours_alone_keeps_kube_scheduler_away() -> None:
    [ours], [twins] = OURS.slices(3), TWINS.slices(3)
    assert all(device["taints"] for device in ours["spec"]["devices"])
    untainted = [
        {key: value for key, value in device.items() if key != "taints"}
        for device in ours["spec"]["devices"]
    ]
    assert twins["spec"]["devices"] == untainted
    assert twins["spec"]["pool"]["name"] == "twin.example.com/node-00003"


def test_devices_of_one_card_exclude_each_other_by_one_counter() -> None:
    counters, devices = (made["spec"] for made in OURS_COUNTED.slices(0))
    assert {made["pool"]["resourceSliceCount"] for made in (counters, devices)} == {2}
    sets = [counter["name"] for counter in counters["sharedCounters"]]
    assert len(sets) == len(set(sets)) == 8
    used = [
        consumed["counterSet"]
        for device in devices["devices"]
        for consumed in device["consumesCounters"]
    ]
    assert sorted(used) == sorted(sets * 3)


def test_whole_cards_come_last_and_from_the_other_end() -> None:
    """As agents publish them where kube-scheduler allocates."""
    names = [device["name"] for device in OURS_COUNTED.slices(0)[1]["spec"]["devices"]]
    shared = [name.partition("-")[2] for name in names if name.startswith("shared")]
    assert [name.partition("-")[0] for name in names] == ["drs"] * 8 + ["shared"] * 8 + [
        "whole"
    ] * 8
    assert [name.partition("-")[2] for name in names[16:]] == shared[::-1]


def test_a_class_selects_devices_of_its_mode() -> None:
    assert [made["metadata"]["name"] for made in TWINS.classes()] == [
        "twin.example.com",
        "shared-twin.example.com",
        "drs-twin.example.com",
    ]
