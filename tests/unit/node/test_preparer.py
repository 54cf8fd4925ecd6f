from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import ClaimDevice
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError, Refused
from dra_driver.node.cdi.spec import Injection
from tests.unit.node.effects import Failing
from tests.unit.node.world import CARDS, POOL, Agent, World, claim, result

FILE = "gcu.enflame.com-claim-uid-one.json"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def prepared(agent: Agent, *refs: ClaimRef) -> list[str]:
    """The error of each claim, in order; empty for success."""
    answers = agent.preparer.prepare(refs)
    return [str(a) if isinstance(a := answers[ref.uid], GcuError) else "" for ref in refs]


def visible(world: World, name: str = FILE) -> set[str]:
    return {
        variable
        for device in json.loads(world.files()[name])["devices"]
        for variable in device["containerEdits"]["env"]
    }


def test_a_whole_card(world: World, agent: Agent) -> None:
    ref = world.api.add(claim("one", result(0)))
    assert agent.preparer.prepare([ref]) == {
        "uid-one": (
            ClaimDevice(
                request="gcu",
                pool=POOL,
                device="whole-0000-0d-00-0",
                cdi_ids=("gcu.enflame.com/claim=uid-one-whole-0000-0d-00-0",),
            ),
        )
    }
    assert visible(world) == {"ENFLAME_VISIBLE_DEVICES=3"}
    assert agent.held() == {"uid-one": "prepared"}
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    assert (world.files(), agent.held()) == ({}, {})


def test_asking_again_gives_the_same_where_the_claim_is_gone(world: World, agent: Agent) -> None:
    ref = world.api.add(claim("one", result(0), result(1)))
    first = agent.preparer.prepare([ref])
    files = world.files()
    world.api.claims.clear()
    assert agent.preparer.prepare([ref, ref]) == first
    assert world.start().preparer.prepare([ref]) == first
    assert world.files() == files


@pytest.mark.parametrize("change", ["file missing", "minor changed", "file altered"])
def test_asking_again_repairs_the_cdi_file(world: World, agent: Agent, change: str) -> None:
    ref = world.api.add(claim("one", result(0)))
    first = agent.preparer.prepare([ref])
    path = world.root / "cdi" / FILE
    if change == "file missing":
        path.unlink()
    elif change == "minor changed":
        world.machine.minors[CARDS[0]] = 7
    else:
        path.write_text("{}")
    assert agent.preparer.prepare([ref]) == first
    minor = 7 if change == "minor changed" else 3
    assert visible(world) == {f"ENFLAME_VISIBLE_DEVICES={minor}"}


def test_a_lost_card_keeps_its_claim_but_takes_no_new_one(world: World, agent: Agent) -> None:
    held = world.api.add(claim("one", result(0)))
    new = world.api.add(claim("two", result(1)))
    assert prepared(agent, held) == [""]
    world.machine.lost |= set(CARDS)
    assert prepared(agent, held) == [""]
    assert prepared(agent, new) == ["card 0000:0e:00.0 is lost"]
    world.reboot()
    assert prepared(agent, held) == ["card 0000:0d:00.0 is lost"]
    assert agent.held() == {"uid-one": "prepared"}
    assert agent.preparer.unprepare([held]) == {"uid-one": None}


def test_a_held_card_is_refused_with_its_holder(world: World, agent: Agent) -> None:
    one = world.api.add(claim("one", result(0)))
    two = world.api.add(claim("two", result(0)))
    assert prepared(agent, one) == [""]
    (error,) = prepared(agent, two)
    assert "card 0000:0d:00.0 cannot be given to claim team/two" in error
    assert "claim team/one (UID uid-one) holds it" in error
    assert agent.held() == {"uid-one": "prepared"}
    agent.preparer.unprepare([one])
    assert prepared(agent, two) == [""]


def test_a_claim_deleted_and_made_anew_is_another_claim(world: World, agent: Agent) -> None:
    old = world.api.add(claim("one", result(0)))
    assert prepared(agent, old) == [""]
    new = world.api.add(claim("one", result(0), uid="uid-new"))
    assert "UID uid-one" in prepared(agent, new)[0]
    assert agent.preparer.unprepare([old]) == {"uid-one": None}
    assert prepared(agent, new) == [""]
    assert agent.held() == {"uid-new": "prepared"}
    assert "UID uid-one is gone" in prepared(agent, old)[0]


def test_one_claims_failure_is_its_own(world: World, agent: Agent) -> None:
    good = world.api.add(claim("good", result(0)))
    missing = ClaimRef("team", "missing", "uid-missing")
    hostile = ClaimRef("team", "one", "../../etc/passwd")
    errors = prepared(agent, missing, hostile)
    assert errors[0].startswith("claim team/missing with UID uid-missing does not exist;")
    assert errors[1] == "'../../etc/passwd' is not a UID"
    assert prepared(agent, good) == [""]


def test_a_claim_is_reported_when_it_is_prepared_for_the_first_time(
    world: World, agent: Agent
) -> None:
    one, bad = (world.api.add(claim("one", result(0))), world.api.add(claim("bad", result("x"))))
    assert [bool(*prepared(agent, ref)) for ref in (bad, one, one)] == [True, False, False]
    assert world.on_prepared == ["one"]


def test_a_bug_met_by_one_claim_is_its_result(
    world: World, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    world.api.claims["team", "odd"] = {"metadata": {"name": "odd", "uid": "uid-odd"}, "status": 7}
    (error,) = prepared(agent, ClaimRef("team", "odd", "uid-odd"))
    assert error.startswith("internal error of the agent: AttributeError")
    assert any(entry.exc_info for entry in caplog.records)


def test_unprepare_knows_only_what_it_must(world: World, agent: Agent) -> None:
    leftover = world.root / "cdi" / FILE
    leftover.parent.mkdir()
    leftover.write_text("{}")
    answers = agent.preparer.unprepare(
        [
            ClaimRef("team", "one", "uid-one"),
            ClaimRef("team", "never", "uid-never"),
            ClaimRef("team", "hostile", "a/b"),
        ]
    )
    assert (answers["uid-one"], answers["uid-never"]) == (None, None)
    assert str(answers["a/b"]) == "'a/b' is not a UID"
    assert world.files() == {}
    assert world.api.reads == []


def test_the_vendors_runtime_gets_no_nodes(world: World) -> None:
    world.injection = Injection.RUNTIME
    agent = world.start()
    prepared(agent, world.api.add(claim("one", result(0))))
    (device,) = json.loads(world.files()[FILE])["devices"]
    assert device["containerEdits"] == {"env": ["ENFLAME_VISIBLE_DEVICES=3"]}


@pytest.mark.parametrize(
    "point", [Point.JOURNAL_APPEND, Point.JOURNAL_SYNC, Point.CDI_WRITE, Point.CDI_RENAME]
)
def test_a_failing_disk_leaves_nothing_that_is_unaccounted_for(world: World, point: Point) -> None:
    disk = Failing(point, lambda: OSError(28, "No space left on device"))
    disk.on = False
    agent = world.start(disk)
    ref = world.api.add(claim("one", result(0)))
    disk.on = True
    assert "No space left on device" in prepared(agent, ref)[0]
    disk.on = False
    assert not set(world.files()) or agent.held()
    assert prepared(agent, ref) == [""]
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    assert (world.files(), agent.held()) == ({}, {})


def test_a_claim_allocated_anew_after_a_failure_moves(world: World) -> None:
    disk = Failing(Point.CDI_REMOVE, lambda: OSError(5, "Input/output error"))
    agent = world.start(disk)
    ref = world.api.add(claim("one", result(0)))
    agent.preparer.prepare([ref])
    assert isinstance(agent.preparer.unprepare([ref])["uid-one"], GcuError)
    assert agent.held() == {"uid-one": "prepared"}
    disk.on = False
    world.api.add(claim("one", result(1)))
    assert prepared(agent, ref) == [""]
    (held,) = agent.journal.snapshot().claims.values()
    assert held.cards == {CARDS[1]}
    assert visible(world) == {"ENFLAME_VISIBLE_DEVICES=2"}


def test_a_failed_prepare_gives_its_card_back(world: World) -> None:
    disk = Failing(Point.CDI_WRITE, lambda: OSError(28, "No space left on device"))
    agent = world.start(disk)
    one, two = (world.api.add(claim(name, result(0))) for name in ("one", "two"))
    assert "No space left" in prepared(agent, one)[0]
    disk.on = False
    assert prepared(agent, two) == [""]


def test_a_call_for_one_claim_stays_in_its_thread(world: World) -> None:
    """One read, one record, one file."""

    class Threads(Effects):
        def __init__(self) -> None:
            self.passed: list[tuple[Point, bool]] = []

        def before(self, point: Point) -> None:
            self.passed.append((point, threading.current_thread() is threading.main_thread()))

    agent = world.start(effects := Threads())
    ref = world.api.add(claim("one", result(0)))
    before = threading.enumerate()
    effects.passed.clear()
    assert prepared(agent, ref) == [""]
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    points = ["journal.append", "journal.sync", "cdi.write", "cdi.rename"]
    points += ["cdi.remove", "journal.append", "journal.sync"]
    assert effects.passed == [(point, True) for point in points]
    assert world.api.reads == ["claim one"]
    assert threading.enumerate() == before


def test_many_calls_at_once(world: World, agent: Agent) -> None:
    """Every claim wants card 0 or 1: one each gets it, whatever the order of the threads."""
    refs = [world.api.add(claim(f"c{n}", result(n % 2))) for n in range(16)]
    answers: dict[str, object] = {}

    def call(ref: ClaimRef) -> None:
        answers.update(agent.preparer.prepare([ref]))

    threads = [threading.Thread(target=call, args=[ref]) for ref in refs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    won = {uid for uid, answer in answers.items() if not isinstance(answer, Refused)}
    assert len(answers) == 16
    assert len(won) == 2
    assert agent.held() == dict.fromkeys(won, "prepared")
    assert set(world.files()) == {f"gcu.enflame.com-claim-{uid}.json" for uid in won}


def test_cards_are_worked_on_in_parallel(world: World) -> None:
    """Two claims on two cards meet inside the slow step, which one lock would not let happen."""

    class Meeting(Effects):
        def __init__(self) -> None:
            self.barrier = threading.Barrier(2, timeout=60)

        def before(self, point: Point) -> None:
            if point is Point.CDI_WRITE:
                self.barrier.wait()

    agent = world.start(Meeting())
    refs = [world.api.add(claim(f"c{n}", result(n))) for n in range(2)]
    threads = [threading.Thread(target=agent.preparer.prepare, args=[[ref]]) for ref in refs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert agent.held() == {"uid-c0": "prepared", "uid-c1": "prepared"}


def test_a_call_that_was_given_up_prepares_nothing(world: World, agent: Agent) -> None:
    """It waited for the API server; meanwhile its pod was deleted, and the kubelet had the claim
    unprepared by another agent, which serves beside this one during an update."""
    ref = world.api.add(claim("one", result(0)))
    other = world.start()
    waits = [True]

    def slow(namespace: str, name: str) -> dict[str, Any]:
        waits.clear()
        assert other.preparer.unprepare([ref]) == {"uid-one": None}
        return world.api.claims[namespace, name]

    world.api.get_claim = slow  # type: ignore[method-assign]
    answers = agent.preparer.prepare([ref], is_cancelled=lambda: not waits)
    assert "given up" in str(answers["uid-one"])
    assert (agent.held(), world.files()) == ({}, {})


def test_what_is_prepared_is_told_whoever_waits(world: World, agent: Agent) -> None:
    ref = world.api.add(claim("one", result(0)))
    first = agent.preparer.prepare([ref])
    assert agent.preparer.prepare([ref], is_cancelled=lambda: True) == first
