"""An old leader that goes on with a write in hand never grants twice."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, results
from dra_driver.model.names import ANNOTATION_TERM
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, whole

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]
SHORT_LEASE = ("--lease-duration=3", "--lease-renew-deadline=2", "--lease-retry=0.5")


def start_in_hand(scene: Scene) -> None:
    """The claim `in-hand`, with opaque parameters, and a pod for it that no scheduler knows."""
    made = claim("in-hand", scene.namespace)
    parameters = {"driver": "example.com", "parameters": {"a": 1}}
    made["spec"]["devices"]["config"] = [{"opaque": parameters}]
    scene.api.create(RESOURCE_CLAIMS, made)
    first = pod_with("first", scene.namespace, "in-hand", schedulerName="nobody")
    scene.api.create(PODS, first)


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    """The file that makes the next old leader stop at its moment."""
    return tmp_path / "armed"


def start_old(
    start_controller: Start, armed: Path, *flags: str, moment: str = "before-2"
) -> ControllerProcess:
    """A leader that stops at the moment; without one, before it allocates."""
    program = ("tests.control_plane.stopping_controller", str(armed), moment)
    old = start_controller(*SHORT_LEASE, *flags, name="replica-old", program=program)
    old.wait_for_log("begins")
    armed.touch()
    return old


def test_a_write_in_the_hand_of_a_stopped_leader_meets_a_conflict(
    scene: Scene, start_controller: Start, armed: Path
) -> None:
    """The card that it is about to give is given to another claim while it is stopped, and it
    writes nothing else when it goes on."""
    scene.machines.add([whole(0)])
    old = start_old(start_controller, armed)
    start_in_hand(scene)
    old.wait_stopped()
    scene.hands.end("first")
    new = start_controller(*SHORT_LEASE, name="replica-new")
    new.wait_for_log("begins")
    assert scene.eyes.claim("in-hand")["metadata"]["annotations"][ANNOTATION_TERM]
    scene.hands.start("second")
    scene.eyes.bound("second")
    old.signal(signal.SIGCONT)
    old.wait_for_log("409 Conflict")
    assert "allocated whole" not in old.log()
    assert allocation(scene.eyes.claim("in-hand")) is None
    assert [each.device for each in results(scene.eyes.claim("second"))] == ["whole-0000-00-00-0"]
    scene.api.delete(RESOURCE_CLAIMS, "in-hand", namespace=scene.namespace)
    scene.eyes.gone("in-hand")
