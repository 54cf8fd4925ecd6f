"""A prepared claim that neither the API server nor the kubelet knows any more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.agent.dra.deleted_claims import FORGOTTEN_AFTER
from dra_driver.kube.errors import Unavailable
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.mode import Mode
from tests.unit.agent.reconcile_rig import ONE, Rig
from tests.unit.node.drs_world import instance, slices, whole

CLAIMS = {
    Mode.WHOLE: whole("a", 0),
    Mode.SHARED: slices("a", 0, 1),
    Mode.DRS: instance("a", 0, 1),
}
EVENT = (
    "GcuClaimForgotten claim team/a (UID uid-a) was prepared, is gone from the API server, and no "
    "container of the kubelet has it: its devices were freed"
)
NAME = ("team", "a")


def reset(rig: Rig) -> None:
    """`kubeadm reset`, and a cluster without the claim."""
    del rig.world.api.claims[NAME]
    rig.kubelet.pods = []


def look_for(rig: Rig, seconds: float) -> None:
    """Once a minute."""
    end = rig.seconds + seconds
    while rig.seconds < end:
        rig.look()
        rig.seconds += 60.0
    rig.look()


def uses(rig: Rig) -> None:
    rig.kubelet.pods = [ContainerResources("team", "p", "main", claims=frozenset("a"))]


@pytest.mark.parametrize("mode", CLAIMS)
def test_what_nobody_knows_is_freed_after_a_while(rig: Rig, mode: Mode) -> None:
    rig.prepared(CLAIMS[mode])
    reset(rig)
    look_for(rig, FORGOTTEN_AFTER - 60.0)
    assert rig.agent.held() == {"uid-a": "prepared"}
    changes = rig.changes
    look_for(rig, 120.0)
    assert rig.agent.held() == {}
    assert rig.world.files() == {}
    assert rig.world.tool.instances(ONE) == ()
    assert rig.recorder.lines.count(EVENT) == 1
    assert rig.changes > changes


def away(rig: Rig) -> None:
    rig.world.api.errors = [Unavailable("away")] * 100


@pytest.mark.parametrize(
    "keep",
    [
        pytest.param(lambda rig: rig.world.api.add(CLAIMS[Mode.DRS]), id="the claim is there"),
        pytest.param(uses, id="a container has it"),
        pytest.param(away, id="the API server does not answer"),
    ],
)
def test_what_somebody_may_know_stays(rig: Rig, keep: Callable[[Rig], object]) -> None:
    rig.prepared(CLAIMS[Mode.DRS])
    reset(rig)
    keep(rig)
    look_for(rig, 2 * FORGOTTEN_AFTER)
    assert rig.agent.held() == {"uid-a": "prepared"}
    assert rig.recorder.lines == []


def test_a_kubelet_that_starts_lists_its_pods_late(rig: Rig) -> None:
    """Each time that it has the claim, the time begins anew."""
    rig.prepared(CLAIMS[Mode.DRS])
    reset(rig)
    for _ in range(3):
        look_for(rig, FORGOTTEN_AFTER - 60.0)
        uses(rig)
        look_for(rig, 0.0)
        rig.kubelet.pods = []
    assert rig.agent.held() == {"uid-a": "prepared"}


def test_a_claim_of_the_same_name_is_another_one(rig: Rig) -> None:
    """Also where the kubelet lists the name: it means the claim that the API server has."""
    rig.prepared(slices("a", 0, 1))
    new = slices("b", 0, 1)  # another share
    new["metadata"] |= {"name": "a", "uid": "uid-new"}
    rig.prepared(new)
    uses(rig)
    look_for(rig, FORGOTTEN_AFTER + 60.0)
    assert rig.agent.held() == {"uid-new": "prepared"}
    assert rig.recorder.lines.count(EVENT) == 1


def test_an_instance_that_cannot_be_destroyed_is_tried_again(rig: Rig) -> None:
    rig.prepared(CLAIMS[Mode.DRS])
    reset(rig)
    rig.world.tool.set_fault("destroy-fails")
    look_for(rig, FORGOTTEN_AFTER)
    assert EVENT not in rig.recorder.lines
    rig.world.tool.clear_faults()
    look_for(rig, 60.0)
    assert rig.agent.held() == {}
    assert rig.world.tool.instances(ONE) == ()
