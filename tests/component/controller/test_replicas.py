"""Several replicas: one leads, and one that led before grants nothing twice."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from dra_driver.kube import watch
from dra_driver.kube.resources import LEASES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import results
from dra_driver.util.backoff import Backoff
from tests.component.controller.conftest import Start
from tests.component.controller.replica import Replica
from tests.component.controller.stage import Stage
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import whole
from tests.fake_api.server import FakeServer


def leads(stage: Stage, replica: Replica) -> None:
    stage.wait(replica.leads, "leader")


def holder(stage: Stage) -> str:
    [lease] = stage.api.all(LEASES)
    return str(lease["spec"].get("holderIdentity") or "")


def test_the_program_ends_in_order(stage: Stage, server: FakeServer, tmp_path: Path) -> None:
    process = ControllerProcess(server.kubeconfig, tmp_path / "log")
    try:
        stage.add_node([whole(0)])
        stage.start("one")
        stage.bind("one")
        assert process.stop() == 0
    finally:
        process.end()
    assert not holder(stage)


def test_settings_that_are_wrong_end_it_with_a_sentence(tmp_path: Path) -> None:
    process = ControllerProcess(tmp_path / "none", tmp_path / "log", "--lease-duration=1")
    assert process.wait() == 1
    assert "lease" in process.log()
    assert "Traceback" not in process.log()


def test_a_restart_goes_on_where_it_was(stage: Stage, start_controller: Start) -> None:
    stage.add_node([whole(0), whole(1)])
    running = start_controller()
    stage.start("first")
    stage.bind("first")
    running.stop()
    assert not holder(stage)
    stage.start("second")
    start_controller("replica-1")
    stage.bind("second")
    stage.no_card_twice(["first", "second"])


def test_only_one_replica_leads(stage: Stage, start_controller: Start) -> None:
    first = start_controller("replica-a")
    leads(stage, first)
    second = start_controller("replica-b")
    stage.wait(second.is_ready, "readiness of the second")
    assert not second.leads()
    assert holder(stage) == "replica-a"
    first.stop()
    leads(stage, second)
    assert holder(stage) == "replica-b"


def test_a_write_that_is_under_way_for_long_meets_a_conflict(
    stage: Stage, start_controller: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """The card that it is about to give is given to another claim meanwhile."""
    stage.add_node([whole(0)])
    old = start_controller("replica-old")
    leads(stage, old)
    faults = stage.api.faults
    with ExitStack() as ending:
        sent = faults.held("replace", RESOURCE_CLAIMS, subresource="status", user=old.user)
        held = ending.enter_context(sent)
        stage.start("in-hand")
        held.wait()
        stage.end("in-hand")
        ending.enter_context(faults.away(old.user, LEASES))
        leads(stage, start_controller("replica-new"))
        stage.start("second")
        stage.bind("second")
    with faults.away(old.user, LEASES):
        stage.wait(lambda: "409 Conflict" in caplog.text, "conflict")
    assert not stage.is_allocated("in-hand")
    assert stage.is_allocated("second")


def test_a_leader_that_cannot_renew_writes_nothing_more(
    stage: Stage, start_controller: Start
) -> None:
    """It watches everything but the Lease: only the deadline stops it. When the other one ends, it
    leads again, on the facts of that moment."""
    stage.add_node([whole(0), whole(1)])
    old = start_controller("replica-old")
    leads(stage, old)
    with stage.api.faults.away(old.user, LEASES):
        stage.wait(lambda: not old.leads(), "end of its term")
        stage.start("user")
        stage.stays(lambda: not stage.is_allocated("user"), 0.2, "nobody leads")
        new = start_controller("replica-new")
        stage.bind("user")
        stage.start("other")
        stage.bind("other")
    writers = {each.user for each in stage.api.faults.calls if each.subresource == "status"}
    assert old.user not in writers
    new.stop()
    leads(stage, old)
    stage.start("last")
    stage.wait_for_event("last", "2 held")
    stage.end("user")
    stage.bind("last")
    assert {each.device for name in ("last", "other") for each in results(stage.claim(name))} == {
        "whole-0000-00-00-0",
        "whole-0000-01-00-0",
    }


def test_it_follows_all_again_as_soon_as_the_server_answers_for_its_lease(
    stage: Stage,
    server: FakeServer,
    start_controller: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its watches have ended, and wait for long after each failure."""
    hours = partial(Backoff, first=7200.0, longest=7200.0)
    monkeypatch.setattr(watch, "Backoff", hours)
    stage.add_node([whole(0)])
    found = start_controller()
    leads(stage, found)
    stage.wait(found.is_ready, "readiness")
    with stage.api.faults.away(found.user):
        server.end_watches()
        stage.wait(lambda: not found.leads(), "end of its term")
    stage.start("pod")
    stage.bind("pod")


SKEWS = {"an hour behind": -3600.0, "an hour ahead": 3600.0}


@pytest.mark.parametrize("skew", SKEWS.values(), ids=SKEWS)
def test_a_wrong_clock_makes_no_second_leader(
    stage: Stage, start_controller: Start, skew: float
) -> None:
    """Neither beside a right one, nor a right one beside it."""
    right = start_controller("replica-right")
    leads(stage, right)
    wrong = start_controller("replica-wrong", skew=skew)
    stage.stays(lambda: not wrong.leads(), 0.5, "the right one leads")
    right.stop()
    leads(stage, wrong)
    another = start_controller("replica-another")
    stage.stays(lambda: not another.leads(), 0.5, "the wrong one leads")
    assert wrong.leads()
