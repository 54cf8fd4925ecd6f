from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import ClaimDevice
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.records import CardRecordKind, card_record
from tests.unit.node.drs_world import DrsWorld, errors
from tests.unit.node.effects import Failing
from tests.unit.node.world import CARDS, POOL, Agent, claim, pod, result

FILE = "gcu.enflame.com-claim-uid-one.json"


def visible(world: DrsWorld, name: str = FILE) -> set[str]:
    return {
        variable
        for device in json.loads(world.files()[name])["devices"]
        for variable in device["containerEdits"]["env"]
    }


def test_a_whole_card(world: DrsWorld, agent: Agent) -> None:
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
    assert visible(world) == {"ENFLAME_VISIBLE_DEVICES=0"}
    assert agent.held() == {"uid-one": "prepared"}
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    assert (world.files(), agent.held()) == ({}, {})


def test_asking_again_gives_the_same_where_the_claim_is_gone(world: DrsWorld, agent: Agent) -> None:
    ref = world.api.add(claim("one", result(0), result(1)))
    first = agent.preparer.prepare([ref])
    files = world.files()
    world.api.claims.clear()
    assert agent.preparer.prepare([ref, ref]) == first
    assert agent.preparer.prepare([ref], is_cancelled=lambda: True) == first
    assert world.start().preparer.prepare([ref]) == first
    assert world.files() == files


@pytest.mark.parametrize("change", ["file missing", "minor changed", "file altered"])
def test_asking_again_repairs_the_cdi_file(world: DrsWorld, agent: Agent, change: str) -> None:
    ref = world.api.add(claim("one", result(0)))
    first = agent.preparer.prepare([ref])
    path = world.root / "cdi" / FILE
    if change == "file missing":
        path.unlink()
    elif change == "minor changed":
        world.tool.set_card(str(CARDS[0]), minor=7)
    else:
        path.write_text("{}")
    assert agent.preparer.prepare([ref]) == first
    minor = 7 if change == "minor changed" else 0
    assert visible(world) == {f"ENFLAME_VISIBLE_DEVICES={minor}"}


def test_a_lost_card_keeps_its_claim_but_takes_no_new_one(world: DrsWorld, agent: Agent) -> None:
    held = world.api.add(claim("one", result(0)))
    new = world.api.add(claim("two", result(1)))
    assert errors(agent, held) == [""]
    for card in CARDS[:2]:
        world.tool.set_card(str(card), lost=True)
    assert errors(agent, held) == [""]
    assert errors(agent, new) == ["card 0000:0e:00.0 is lost"]
    world.reboot()
    assert errors(agent, held) == ["card 0000:0d:00.0 is lost"]
    assert agent.held() == {"uid-one": "prepared"}
    assert agent.preparer.unprepare([held]) == {"uid-one": None}


def test_a_claim_deleted_and_made_anew_is_another_claim(world: DrsWorld, agent: Agent) -> None:
    old = world.api.add(claim("one", result(0)))
    assert errors(agent, old) == [""]
    new = world.api.add(claim("one", result(0), uid="uid-new"))
    assert "UID uid-one" in errors(agent, new)[0]
    assert agent.preparer.unprepare([old]) == {"uid-one": None}
    assert errors(agent, new) == [""]
    assert agent.held() == {"uid-new": "prepared"}
    assert "UID uid-one is gone" in errors(agent, old)[0]


def test_one_claims_failure_is_its_own(world: DrsWorld, agent: Agent) -> None:
    good = world.api.add(claim("good", result(0)))
    missing = ClaimRef("team", "missing", "uid-missing")
    hostile = ClaimRef("team", "one", "../../etc/passwd")
    told = [str(error) for error in agent.preparer.prepare([missing, hostile]).values()]
    assert told[0].startswith("claim team/missing with UID uid-missing does not exist;")
    assert told[1] == "'../../etc/passwd' is not a UID"
    assert errors(agent, good) == [""]


def test_a_claim_is_reported_when_it_is_prepared_for_the_first_time(
    world: DrsWorld, agent: Agent
) -> None:
    one, bad = (world.api.add(claim("one", result(0))), world.api.add(claim("bad", result("x"))))
    assert [bool(*errors(agent, ref)) for ref in (bad, one, one)] == [True, False, False]
    assert world.on_prepared == ["one"]


def test_a_bug_met_by_one_claim_is_its_result(
    world: DrsWorld, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    world.api.claims["team", "odd"] = {"metadata": {"name": "odd", "uid": "uid-odd"}, "status": 7}
    (error,) = errors(agent, ClaimRef("team", "odd", "uid-odd"))
    assert error.startswith("internal error of the agent: AttributeError")
    assert any(entry.exc_info for entry in caplog.records)


def test_unprepare_knows_only_what_it_must(world: DrsWorld, agent: Agent) -> None:
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


def test_the_vendors_runtime_gets_no_nodes(world: DrsWorld) -> None:
    world.injection = Injection.RUNTIME
    agent = world.start()
    errors(agent, world.api.add(claim("one", result(0))))
    (device,) = json.loads(world.files()[FILE])["devices"]
    assert device["containerEdits"] == {"env": ["ENFLAME_VISIBLE_DEVICES=0"]}


@pytest.mark.parametrize(
    "point", [Point.JOURNAL_APPEND, Point.JOURNAL_SYNC, Point.CDI_WRITE, Point.CDI_RENAME]
)
def test_a_failing_disk_leaves_nothing_that_is_unaccounted_for(
    world: DrsWorld, point: Point
) -> None:
    disk = Failing(point, lambda: OSError(28, "No space left on device"))
    disk.on = False
    agent = world.start(disk)
    ref = world.api.add(claim("one", result(0)))
    disk.on = True
    assert "No space left on device" in errors(agent, ref)[0]
    disk.on = False
    # A record that could not be synced may be there.
    assert agent.held() == {} or point in {Point.JOURNAL_APPEND, Point.JOURNAL_SYNC}
    assert not set(world.files()) or agent.held()
    assert errors(agent, ref) == [""]
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    assert (world.files(), agent.held()) == ({}, {})


def test_a_call_for_one_claim_stays_in_its_thread(world: DrsWorld) -> None:
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
    assert errors(agent, ref) == [""]
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    points = ["journal.append", "journal.sync", "cdi.write", "cdi.rename"]
    points += ["cdi.remove", "journal.append", "journal.sync"]
    assert effects.passed == [(point, True) for point in points]
    assert world.api.reads == ["claim one"]
    assert threading.enumerate() == before


def test_cards_whose_mode_is_switched_back_do_not_wait_for_each_other(world: DrsWorld) -> None:
    """Whole cards, on which DRS mode is still on. Each switch waits until the other has begun."""

    class BothBegin(Effects):
        def __init__(self) -> None:
            self.both = threading.Barrier(2, timeout=60)
            self.begun = threading.local()

        def before(self, point: Point) -> None:
            if point is Point.EFSMI_CALL and not hasattr(self.begun, "once"):
                self.begun.once = True
                self.both.wait()

    agent = world.start(BothBegin())
    for card in CARDS[:2]:
        world.tool.set_card(str(card), virtualization="DRS", drs=True)
        agent.journal.write(card_record(CardRecordKind.DRS_ON, card))
    refs = [world.api.add(claim(f"c{at}", result(at))) for at in range(2)]
    world.api.pods["team", "pod"] = pod({"a": "c0", "b": "c1"}, ("a", "b"))
    answers = agent.preparer.prepare(refs)
    assert not [each for each in answers.values() if isinstance(each, GcuError)]


def test_a_call_that_was_given_up_prepares_nothing(world: DrsWorld, agent: Agent) -> None:
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
