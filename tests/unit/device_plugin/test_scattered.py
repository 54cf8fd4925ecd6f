"""A pod's slices, and its instances, are of one card, or somebody is told."""

from __future__ import annotations

import pytest

from dra_driver.device_plugin.scattered import scattered
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.mode import Mode
from dra_driver.model.plugin_device import RESOURCES
from tests.unit.device_plugin.plugin_world import ids

WHOLE, SHARED, DRS = (RESOURCES[mode] for mode in Mode)
A = {"metadata": {"namespace": "team", "name": "a", "uid": "uid-a"}}
B = {"metadata": {"namespace": "team", "name": "b", "uid": "uid-b"}}


def has(container: str, resource: str, *devices: str, pod: str = "uid-a") -> Recorded:
    return Recorded(pod, container, resource, frozenset(devices))


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        (
            [
                has("c0", SHARED, *ids(0, Mode.SHARED, 0)),
                has("c1", SHARED, *ids(1, Mode.SHARED, 0)),
            ],
            1,
        ),
        ([has("c0", DRS, *ids(0, Mode.DRS, 0)), has("c1", DRS, *ids(1, Mode.DRS, 0))], 1),
        (
            [
                has("c0", SHARED, *ids(0, Mode.SHARED, 0)),
                has("c1", SHARED, *ids(0, Mode.SHARED, 1)),
            ],
            0,
        ),
        ([has("c0", WHOLE, *ids(0, Mode.WHOLE, 0)), has("c1", WHOLE, *ids(1, Mode.WHOLE, 0))], 0),
        ([has("c0", SHARED, *ids(0, Mode.SHARED, 0)), has("c1", DRS, *ids(1, Mode.DRS, 0))], 0),
        (
            [
                has("c0", SHARED, *ids(0, Mode.SHARED, 0)),
                has("c0", SHARED, *ids(1, Mode.SHARED, 0), pod="uid-b"),
            ],
            0,
        ),
        ([has("c0", SHARED, "0-1"), has("c1", SHARED, *ids(0, Mode.SHARED, 0))], 0),
        ([], 0),
    ],
    ids=[
        "slices",
        "instances",
        "slices of one card",
        "whole cards",
        "two kinds",
        "two pods",
        "of another plugin before",
        "nothing",
    ],
)
def test_who_has_devices_of_several_cards(recorded: list[Recorded], told: int) -> None:
    found = scattered(recorded, [A, B])
    assert [each.pod for each in found] == [A] * told
