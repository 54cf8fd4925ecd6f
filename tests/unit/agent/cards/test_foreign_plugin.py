"""Whose device plugins serve a kubelet, and whose devices pods have."""

from __future__ import annotations

import pytest

from dra_driver.agent.cards.foreign_plugin import foreign_plugin, foreign_resources
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from tests.unit.node.world import CARDS

OURS = str(PluginDevice(CARDS[0], Mode.SHARED, 0))
SHARED = "enflame.com/shared-gcu"


@pytest.mark.parametrize(
    ("devices", "foreign"),
    [
        ({}, []),
        ({"example.com/gpu": {"0"}}, []),
        ({SHARED: {OURS}}, []),
        ({SHARED: set()}, []),
        ({"enflame.com/gcu-count": {"0"}}, []),
        ({SHARED: {OURS, "0"}}, [SHARED]),
        ({"enflame.com/gcu": {"0"}, SHARED: {OURS}}, ["enflame.com/gcu"]),
        ({"enflame.com/vgcu": {"0"}}, ["enflame.com/vgcu"]),
    ],
    ids=["none", "others", "our own", "ended", "counts", "in our place", "beside ours", "new"],
)
def test_whose_resources(devices: dict[str, set[str]], foreign: list[str]) -> None:
    assert list(foreign_resources(devices)) == foreign


def test_pods_of_a_plugin_that_is_gone_count_until_they_end() -> None:
    theirs = [
        ContainerResources("team", f"p{i}", "main", {SHARED: frozenset({"7"})}) for i in range(4)
    ]
    ours = ContainerResources("team", "ours", "main", {SHARED: frozenset({OURS})})
    problem, pods = foreign_plugin({}, [*theirs, ours])
    assert problem is not None
    assert problem.text.endswith("until they end: team/p0, team/p1, team/p2 and 1 more")
    assert pods == 4
    assert foreign_plugin({}, [ours]) == (None, 0)
