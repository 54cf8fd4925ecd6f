"""When the publisher writes, what it does not write, and how often it tries."""

from __future__ import annotations

import threading
from copy import deepcopy
from pathlib import Path

import pytest

from dra_driver.agent.slices.publisher import PublishLock
from dra_driver.agent.slices.slices import SliceForm
from dra_driver.kube.api import Change, ServerVersion
from dra_driver.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    Unavailable,
)
from dra_driver.model.errors import GcuError, JournalError
from tests.unit.agent.objects import device, published
from tests.unit.agent.scripted_api import ScriptedApi
from tests.unit.agent.slices.publisher_rig import FIRST, UNPUBLISHED, Rig


def test_the_first_publication_and_nothing_after_it() -> None:
    rig = Rig(ScriptedApi())
    assert rig.publisher.problem == UNPUBLISHED
    rig.listed()
    rig.publisher.publish()
    assert rig.api.calls == FIRST
    changes = rig.publisher.publish()
    assert changes is not None
    assert not changes
    assert rig.api.calls == FIRST


@pytest.mark.parametrize("listed", [True, False], ids=["no hardware", "no list"])
def test_what_is_unknown_is_not_published(listed: bool) -> None:
    rig = Rig(ScriptedApi(), waits=1)
    if listed:
        rig.listed(*published(device(1)))
        rig.devices = None
    assert rig.publisher.publish() is None
    assert rig.api.calls == ["version", *(["list"] if listed else [])]
    assert rig.publisher.problem == UNPUBLISHED


def test_a_node_without_cards_says_so() -> None:
    rig = Rig(ScriptedApi()).listed(*published(device(1)))
    rig.devices = []
    changes = rig.publisher.publish()
    assert changes is not None
    assert "devices" not in changes.update[0]["spec"]


REFUSALS = [
    pytest.param({"version": Unavailable("away")}, "away", id="server away"),
    pytest.param({"get_nodes": NotFound("no such node")}, "no such node", id="no node"),
    pytest.param({"create": Forbidden("may not create")}, "may not create", id="forbidden"),
    pytest.param(
        {"dry_run": AlreadyExists("it is there")},
        "ResourceSlice n1-gcu.enflame.com-000 exists, but is not one of this driver",
        id="another's slice of that name",
    ),
]


@pytest.mark.parametrize(("refusals", "told"), REFUSALS)
def test_a_refusal_is_told_and_tried_again_ever_more_slowly(
    refusals: dict[str, KubeError], told: str
) -> None:
    api = ScriptedApi(**{verb: [error] for verb, error in refusals.items()})
    rig = Rig(api, waits=9).listed()
    assert rig.run() == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert told in str(rig.publisher.problem)
    assert len(api.calls) <= 4 * 9 + 1


def test_publication_is_retried_until_the_server_has_it() -> None:
    rig = Rig(ScriptedApi(create=[Unavailable("away")]), waits=3).listed()
    assert rig.run() == [1, 2, 4]
    rig.api.refusals.clear()
    assert rig.publisher._attempt()
    assert rig.api.calls[-2:] == ["dry run", "create"]
    assert rig.publisher.problem is None


@pytest.mark.parametrize(
    ("minor", "form", "remedy"),
    [
        (33, SliceForm.HIDDEN, "use Kubernetes 1.34 or newer"),
        (33, SliceForm.VISIBLE, "use Kubernetes 1.34 or newer"),
        (35, SliceForm.VISIBLE, "let the chart's sliceForm be auto"),
    ],
    ids=["no claims", "no claims, no taints", "no taints"],
)
def test_a_server_that_is_too_old_is_refused_before_anything_is_written(
    minor: int, form: SliceForm, remedy: str
) -> None:
    rig = Rig(ScriptedApi(), waits=2, form=form).listed()
    rig.api.version = ServerVersion(1, minor, f"v1.{minor}.6")
    rig.run()
    assert remedy in str(rig.publisher.problem)
    assert rig.api.calls == ["version", "version"]


def test_holdings_that_cannot_be_read_hold_publication_up() -> None:
    """A device that must stay would be taken away otherwise."""
    rig = Rig(ScriptedApi(), waits=1).listed(*published(device(2)))
    rig.held = JournalError("the disk is gone")
    rig.run()
    assert rig.publisher.problem == "the disk is gone"
    assert rig.api.calls == ["version", "list"]


@pytest.mark.parametrize(
    ("error", "writes"),
    [(Conflict("changed"), ["replace"]), (NotFound("gone"), ["dry run", "create"])],
    ids=["changed meanwhile", "deleted meanwhile"],
)
def test_a_race_is_compared_again_without_a_word(error: GcuError, writes: list[str]) -> None:
    rig = Rig(ScriptedApi(replace=[error]), waits=1).listed(*published(device(2)))
    assert rig.run() == [1]
    before = rig.publisher.problem
    rig.api.refusals.clear()
    assert rig.publisher._attempt()
    assert (before, rig.publisher.problem) == (UNPUBLISHED, None)
    assert rig.api.calls == ["version", "list", "get nodes", "replace", "get nodes", *writes]


def test_somebody_who_writes_the_same_slices_all_the_time_sees_few_writes() -> None:
    rig = Rig(ScriptedApi(), waits=9).listed()
    assert rig.publisher._attempt()

    def somebody() -> None:
        [ours] = rig.publisher.published.slices or ()
        theirs = deepcopy(ours)
        theirs["spec"]["devices"] = [device(9)]
        theirs["metadata"]["resourceVersion"] = f"{1000 + len(rig.waits)}"
        rig.publisher.published.on_event(Change.MODIFIED, theirs)

    somebody()
    rig.on_wait = somebody
    assert rig.run() == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert rig.api.calls.count("replace") == 9


def test_news_of_ours_waits_for_nothing() -> None:
    rig = Rig(ScriptedApi()).listed()
    for bus in range(9):
        rig.devices = [device(bus)]
        assert rig.publisher._attempt()
    assert rig.api.calls.count("replace") == 8


def test_it_compares_every_ten_seconds_though_nothing_wakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The allocator may have changed, or the last claim of a lost card ended."""
    rig, waits = Rig(ScriptedApi()).listed(*published(device(1))), list[float]()

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            waits.append(timeout)
            if len(waits) == 3:
                rig.publisher.stop(0)
            return False

    monkeypatch.setattr(rig.publisher, "_woken", Clock())
    rig.publisher.run()
    assert waits == [10.0, 10.0, 10.0]
    assert rig.api.calls == ["version", "list", "get nodes"]


def test_the_nodes_uid_is_read_anew_before_a_write() -> None:
    rig = Rig(ScriptedApi()).listed(*published(device(1)))
    rig.publisher.publish()
    [gone] = rig.publisher.published.slices or ()
    rig.publisher.published.on_event(Change.DELETED, gone)
    rig.api.calls.clear()
    rig.publisher.publish()
    assert rig.api.calls == ["get nodes", "dry run", "create"]


def test_of_two_agents_one_publishes_and_the_other_takes_over(tmp_path: Path) -> None:
    lock = tmp_path / "publisher.lock"
    older = Rig(ScriptedApi(), publish_lock=PublishLock(lock)).listed()
    newer = Rig(ScriptedApi(), publish_lock=PublishLock(lock))
    assert older.publisher._attempt()
    assert newer.publisher._attempt()
    assert (older.api.calls, newer.api.calls) == (FIRST, [])
    problems = [newer.publisher.problem]
    newer.listed(*(older.publisher.published.slices or ()))
    problems.append(newer.publisher.problem)  # an update waits until there is none
    assert problems == ["the slices of this node have not been listed yet", None]
    older.publisher.stop(0)
    newer.devices = [device(1), device(2)]
    assert newer.publisher._attempt()
    assert newer.api.calls == ["version", "list", "get nodes", "replace"]


def test_a_lock_that_cannot_be_taken_is_told_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("in the way")
    rig = Rig(
        ScriptedApi(), publish_lock=PublishLock(tmp_path / "locks" / "publisher.lock")
    ).listed()
    assert not rig.publisher._attempt()
    assert "cannot be used: Not a directory" in str(rig.publisher.problem)
    (tmp_path / "locks").unlink()
    assert rig.publisher._attempt()
    assert rig.api.calls == FIRST
