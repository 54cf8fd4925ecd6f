"""What the drivers of `make bench-cluster` publish."""

from __future__ import annotations

from bench.published import COUNTED, OURS, TWINS


def test_ours_alone_keeps_kube_scheduler_away() -> None:
    [ours], [twins] = OURS.slices(3), TWINS.slices(3)
    assert all(each["taints"] for each in ours["spec"]["devices"])
    untainted = [
        {key: value for key, value in each.items() if key != "taints"}
        for each in ours["spec"]["devices"]
    ]
    assert twins["spec"]["devices"] == untainted
    assert twins["spec"]["pool"]["name"] == "twin.example.com/node-00003"


def test_devices_of_one_card_exclude_each_other_by_one_counter() -> None:
    counters, devices = (each["spec"] for each in COUNTED.slices(0))
    assert {each["pool"]["resourceSliceCount"] for each in (counters, devices)} == {2}
    sets = [each["name"] for each in counters["sharedCounters"]]
    assert len(sets) == len(set(sets)) == 8
    used = [consumed["counterSet"] for each in devices["devices"] for consumed in consumes(each)]
    assert sorted(used) == sorted(sets * 3)


def consumes(device: dict[str, object]) -> list[dict[str, str]]:
    found = device["consumesCounters"]
    assert isinstance(found, list)
    return found
