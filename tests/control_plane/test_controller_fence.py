"""Two controllers at once: never both lead, and an old leader that goes on with a write in hand
never grants twice."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, results
from dra_driver.model.names import ANNOTATION_TERM
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.late_controller import late
from tests.control_plane.objects import claim, pod_with, whole

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]
SHORT_LEASE = ("--lease-duration=3", "--lease-renew-deadline=2", "--lease-retry=0.5")
# A leader on a machine that is slow for three seconds keeps this one.
LONGER_LEASE = ("--lease-duration=6", "--lease-renew-deadline=4", "--lease-retry=1")


def start_in_hand(scene: Scene, *, opaque: bool = False) -> None:
    """The claim `in-hand`, and a pod for it that no scheduler knows."""
    made = claim("in-hand", scene.namespace)
    if opaque:
        parameters = {"driver": "example.com", "parameters": {"a": 1}}
        made["spec"]["devices"]["config"] = [{"opaque": parameters}]
    scene.api.create(RESOURCE_CLAIMS, made)
    first = pod_with("first", scene.namespace, "in-hand", schedulerName="nobody")
    scene.api.create(PODS, first)


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    """The file that makes the next old leader stop before its allocation."""
    return tmp_path / "armed"


def start_old(start_controller: Start, armed: Path) -> ControllerProcess:
    program = ("tests.control_plane.stopping_controller", str(armed))
    old = start_controller(*SHORT_LEASE, name="replica-old", program=program)
    old.wait_for_log("begins")
    armed.touch()
    return old


@pytest.mark.parametrize("opaque", [False, True], ids=["plain", "with opaque parameters"])
def test_a_write_in_the_hand_of_a_stopped_leader_meets_a_conflict(
    scene: Scene, start_controller: Start, armed: Path, opaque: bool
) -> None:
    """The card that it is about to give is given to another claim while it is stopped."""
    scene.machines.add([whole(0)])
    old = start_old(start_controller, armed)
    start_in_hand(scene, opaque=opaque)
    old.wait_stopped()
    scene.hands.end("first")
    new = start_controller(*SHORT_LEASE, name="replica-new")
    new.wait_for_log("begins")
    assert scene.eyes.claim("in-hand")["metadata"]["annotations"][ANNOTATION_TERM]
    scene.hands.start("second")
    scene.eyes.bound("second")
    old.signal(signal.SIGCONT)
    old.wait_for_log("409 Conflict")
    assert allocation(scene.eyes.claim("in-hand")) is None
    assert [each.device for each in results(scene.eyes.claim("second"))] == ["whole-0000-00-00-0"]
    scene.api.delete(RESOURCE_CLAIMS, "in-hand", namespace=scene.namespace)
    scene.eyes.gone("in-hand")


def test_a_stopped_leader_that_goes_on_writes_nothing_new(
    scene: Scene, start_controller: Start
) -> None:
    """Claims that came after the other took over are kept safe by the lease's deadline alone."""
    scene.machines.add([whole(0), whole(1)])
    old = start_controller(*SHORT_LEASE, name="replica-old")
    old.wait_for_log("begins")
    old.suspend()
    new = start_controller(*SHORT_LEASE, name="replica-new")
    new.wait_for_log("begins")
    for name in ("one", "two"):
        scene.hands.start(name)
    old.signal(signal.SIGCONT)
    for name in ("one", "two"):
        scene.eyes.bound(name)
    assert "allocated whole" not in old.log()
    devices = {each.device for name in ("one", "two") for each in results(scene.eyes.claim(name))}
    assert len(devices) == 2


def test_a_leader_that_cannot_renew_writes_nothing_more(
    scene: Scene, start_controller: Start, tmp_path: Path
) -> None:
    """It watches everything but the Lease: only the deadline stops it."""
    scene.machines.add([whole(0), whole(1)])
    silence = tmp_path / "silence"
    program = late("get", "leases", silence)
    old = start_controller(*SHORT_LEASE, name="replica-old", program=program)
    old.wait_for_log("begins")
    silence.touch()
    new = start_controller(*SHORT_LEASE, name="replica-new")
    new.wait_for_log("begins")
    new.suspend()
    scene.hands.start("user")
    scene.eyes.stays(lambda: allocation(scene.eyes.claim("user")) is None, 3.0, "unallocated")
    new.signal(signal.SIGCONT)
    scene.eyes.bound("user")
    assert "allocated whole" not in old.log()


def test_a_leader_that_was_stopped_for_a_minute(
    scene: Scene, start_controller: Start, armed: Path
) -> None:
    """Twenty times the lease, with a write in hand. Meanwhile cards come and go under another
    leader; when that ends, the first one leads again, on the facts of that moment."""
    scene.machines.add([whole(0), whole(1)])
    old = start_old(start_controller, armed)
    start_in_hand(scene)
    old.wait_stopped()
    new = start_controller(*SHORT_LEASE, name="replica-new")
    new.wait_for_log("begins")
    in_hand = scene.eyes.allocated("in-hand")
    begun = time.monotonic()
    for number in count():
        scene.hands.start(f"user-{number}")
        scene.eyes.bound(f"user-{number}")
        if time.monotonic() > begun + 60.0:
            break
        scene.hands.end(f"user-{number}")
        scene.eyes.released(f"user-{number}")
    old.signal(signal.SIGCONT)
    old.wait_for_log("409 Conflict")
    assert scene.eyes.claim("in-hand")["status"] == in_hand["status"]
    armed.unlink()
    before = old.log().count("begins")
    new.stop()
    wait_until(lambda: old.log().count("begins") > before, PATIENCE, "the first one leads again")
    scene.hands.start("last")
    scene.wait_for_event("last", "2 cards: 2 held; 1 requested")
    scene.hands.end(f"user-{number}")
    scene.eyes.bound("last")
    scene.eyes.no_card_twice(["last", "in-hand"])
    scene.hands.end_all()


SKEWS = {"an hour behind": -3600.0, "an hour ahead": 3600.0}


@pytest.mark.parametrize("skew", SKEWS.values(), ids=SKEWS)
def test_a_wrong_clock_makes_no_second_leader(
    scene: Scene, start_controller: Start, skew: float
) -> None:
    """Neither beside a right one, nor a right one beside it."""
    scene.machines.add([whole(0)])
    program = ("tests.control_plane.skewed_controller", str(skew))
    right = start_controller(*LONGER_LEASE, name="replica-right")
    right.wait_for_log("begins")
    wrong = start_controller(*LONGER_LEASE, name="replica-wrong", program=program)
    wrong.wait_for_log("probes on port")
    scene.eyes.stays(lambda: "leads" not in wrong.log(), 4.0, "the right one leads")
    right.kill()
    wrong.wait_for_log("begins")
    another = start_controller(*LONGER_LEASE, name="replica-another")
    another.wait_for_log("probes on port")
    scene.eyes.stays(lambda: "leads" not in another.log(), 4.0, "the wrong one leads")
    scene.hands.start("user")
    scene.eyes.bound("user")
    assert "allocated" in wrong.log()
