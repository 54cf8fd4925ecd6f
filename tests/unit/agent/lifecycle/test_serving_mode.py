"""Which way a node is served in, and who notices that another one is right."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.agent.lifecycle.serving_mode import (
    ModeSetting,
    ServingDecision,
    ServingMode,
    ServingState,
)
from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue

PLUGIN, DRA = ServingMode.DEVICE_PLUGIN, ServingMode.DRA


class Cluster:
    """Plays `Api`: a server, whether it has DRA, and a kubelet."""

    def __init__(self, server: str, kubelet: str, *, serves_dra: bool = True) -> None:
        self.server = server
        self.kubelet = kubelet
        self.serves_dra = serves_dra

    def server_version(self) -> ServerVersion:
        if not self.server:
            raise Unavailable("the API server did not answer")
        major, minor, *_ = self.server.removeprefix("v").split(".")
        return ServerVersion(int(major), int(minor), self.server)

    def serves(self, resource: Resource) -> bool:
        assert resource is RESOURCE_SLICES
        return self.serves_dra

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return {
            "metadata": {"name": name},
            "status": {"nodeInfo": {"kubeletVersion": self.kubelet}},
        }

    def choice(self, mode: ModeSetting = "auto") -> ServingDecision:
        return ServingState(cast("Api", self), "n1", mode).choose()


NEW, OLD = "v1.36.3", "v1.30.14"


@pytest.mark.parametrize(
    ("cluster", "mode", "way", "has_dra", "reason"),
    [
        (Cluster(NEW, NEW), "auto", DRA, True, "the server is v1.36.3, the kubelet v1.36.3"),
        (Cluster(OLD, OLD), "auto", PLUGIN, False, "the server is v1.30.14, and DRA is used from"),
        (Cluster("v1.33.9", OLD), "auto", PLUGIN, False, "the server is v1.33.9"),
        (Cluster("v1.34.4", "v1.34.4"), "auto", DRA, True, "the server is v1.34.4"),
        (Cluster(NEW, "v1.33.9"), "auto", PLUGIN, True, "the kubelet is v1.33.9, and DRA is used"),
        (
            Cluster(NEW, NEW, serves_dra=False),
            "auto",
            PLUGIN,
            False,
            "the server v1.36.3 does not serve resource.k8s.io/v1",
        ),
        (Cluster("v1.37.0", "v1.36.1+k3s1"), "auto", DRA, True, "the kubelet v1.36.1+k3s1"),
        (Cluster(NEW, NEW), "device-plugin", PLUGIN, True, "mode is set to device-plugin"),
        (Cluster(OLD, OLD), "device-plugin", PLUGIN, False, "mode is set to device-plugin"),
        (Cluster("", ""), "dra", DRA, True, "mode is set to dra"),
    ],
    ids=[
        "new",
        "old",
        "both old",
        "the oldest with claims",
        "kubelet behind",
        "DRA switched off",
        "newer",
        "plugin by setting, new",
        "plugin by setting, old",
        "DRA by setting",
    ],
)
def test_the_way_and_why(
    cluster: Cluster, mode: ModeSetting, way: ServingMode, has_dra: bool, reason: str
) -> None:
    choice = cluster.choice(mode)
    assert (choice.mode, choice.has_dra) == (way, has_dra)
    assert reason in str(choice)
    assert str(choice).startswith("GCUs are served by ")


@pytest.mark.parametrize("kubelet", ["", "1", "vX.Y", "v1.36.3\n"])
def test_a_node_that_does_not_say_its_kubelet(kubelet: str) -> None:
    with pytest.raises(InvalidValue, match="does not say which kubelet"):
        Cluster(NEW, kubelet).choice()


def test_a_change_of_the_way_is_told_once() -> None:
    """It is asked for every five to ten minutes, so that agents that began together do not ask
    together."""
    cluster = Cluster(NEW, NEW)
    times = iter([0, 299, 300, 300, 749, 750, 750, 1050, 1050, 1e6])
    draws = iter([0.0, 0.5, 0.0, 0.0])
    selector = ServingState(
        cast("Api", cluster), "n1", "auto", clock=lambda: next(times), draw=lambda: next(draws)
    )
    selector.choose()
    told = []
    for cluster.server in [OLD, NEW, OLD, "", OLD, OLD]:  # 299, 300, 749, 750, 1050, 1e6 s
        told.append(selector.changed())
    assert [each and each.mode for each in told] == [None, None, None, None, PLUGIN, None]


def test_before_a_way_is_chosen_none_has_changed() -> None:
    """The start may wait for the server for long."""
    cluster, times = Cluster("", NEW), iter([0, 1e6, 1e6])
    serving = ServingState(cast("Api", cluster), "n1", "auto", clock=lambda: next(times))
    with pytest.raises(Unavailable):
        serving.choose()
    cluster.server = NEW
    assert serving.changed() is None


@pytest.mark.parametrize("mode", ["dra", "device-plugin"])
def test_a_way_by_setting_does_not_change(mode: ModeSetting) -> None:
    cluster = Cluster(NEW, NEW)
    serving = ServingState(cast("Api", cluster), "n1", mode, clock=lambda: 1e6)
    serving.choose()
    cluster.server = OLD
    assert serving.changed() is None
