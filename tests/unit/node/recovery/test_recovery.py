from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dra_driver.hardware.drs.drs import Drs
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, encode, record
from dra_driver.node.claims.belongings import Outcome
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.locks import Locks
from dra_driver.node.recovery.reconciler import NodeReconciler
from tests.unit.node.world import CARDS, World, claim, hold, result

FILE = "gcu.enflame.com-claim-uid-one.json"
ONE = ClaimRef("team", "one", "uid-one")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A node on which claim one is prepared, and whose agent is down."""
    world = World(tmp_path)
    agent = world.start()
    agent.preparer.prepare([world.api.add(claim("one", result(0)))])
    return world


def test_nothing_to_do_is_nothing_done(world: World) -> None:
    files = world.files()
    report = world.boot().recover()
    assert (report.recovered, report.failed) == ({}, {})
    assert world.files() == files


def test_a_reboot_brings_the_files_back(world: World) -> None:
    files = world.files()
    world.reboot()
    assert world.boot().recover().recovered == {"uid-one": Outcome.RENDERED}
    assert world.files() == files


def test_a_reboot_that_changed_the_minors_is_shown(world: World) -> None:
    world.machine.minors[CARDS[0]] = 5
    assert world.boot().recover().recovered == {"uid-one": Outcome.RENDERED}
    assert "ENFLAME_VISIBLE_DEVICES=5" in world.files()[FILE]


def test_a_lost_journal_is_rebuilt_from_the_files(world: World) -> None:
    before = world.start().journal.snapshot().claims["uid-one"].devices
    shutil.rmtree(world.root / "state")
    agent = world.boot()
    assert agent.recover().recovered == {"uid-one": Outcome.ADOPTED}
    assert agent.journal.snapshot().claims["uid-one"].devices == before
    two = world.api.add(claim("two", result(0)))
    assert "team/one" in str(agent.preparer.prepare([two])["uid-two"])
    assert agent.preparer.unprepare([ONE]) == {"uid-one": None}


def write_journal(world: World, *kinds: ClaimStep, damaged: bool) -> None:
    header = {"kind": "header", "format": "gcu-dra-journal", "version": 1}
    raws = [header, *(record(kind, ONE, (hold(0),)).raw for kind in kinds)]
    content = b"".join(frames.encode(encode(raw)) for raw in raws)
    (world.root / "state" / "journal").write_bytes(content + (b"torn" if damaged else b""))


@pytest.mark.parametrize(
    ("left", "outcome", "held"),
    [
        pytest.param(
            ([ClaimStep.PREPARE_STARTED], "file"),
            Outcome.ROLLED_BACK,
            False,
            id="kill after the file",
        ),
        pytest.param(
            ([ClaimStep.PREPARE_STARTED], ""), Outcome.ROLLED_BACK, False, id="kill before it"
        ),
        pytest.param(
            ([ClaimStep.PREPARE_STARTED], "damage and file"),
            Outcome.FINISHED,
            True,
            id="the prepared record may be lost",
        ),
        pytest.param(
            ([ClaimStep.PREPARE_STARTED], "damage"),
            Outcome.ROLLED_BACK,
            False,
            id="damage, but no file",
        ),
        pytest.param(
            ([ClaimStep.PREPARE_COMPLETED, ClaimStep.UNPREPARE_STARTED], "file"),
            Outcome.FINISHED,
            False,
            id="unprepare begun",
        ),
        pytest.param(
            ([ClaimStep.PREPARE_COMPLETED], "damage"),
            Outcome.RENDERED,
            True,
            id="prepared, no file",
        ),
        pytest.param(([], "damage and file"), Outcome.ADOPTED, True, id="record lost"),
        pytest.param(([], "file"), Outcome.ADOPTED, True, id="record unknown"),
    ],
)
def test_what_a_kill_or_a_bad_disk_left(
    world: World, left: tuple[list[ClaimStep], str], outcome: Outcome, held: bool
) -> None:
    kinds, circumstances = left
    write_journal(world, *kinds, damaged="damage" in circumstances)
    if "file" not in circumstances:
        world.reboot()
    agent = world.boot()
    assert agent.recover().recovered == {"uid-one": outcome}
    assert agent.held() == ({"uid-one": "prepared"} if held else {})
    assert set(world.files()) == ({FILE} if held else set())


def test_files_that_tell_nothing_are_removed(world: World) -> None:
    cdi = world.root / "cdi"
    (cdi / "gcu.enflame.com-claim-uid-two.json").write_text("{garbage")
    (cdi / "gcu.enflame.com-claim-uid-three.json.new").write_text("half")
    (cdi / "other-vendor.json").write_text("{garbage")
    assert world.boot().recover().recovered == {"uid-two": Outcome.REMOVED}
    assert set(world.files()) == {FILE, "other-vendor.json"}


def test_a_file_that_contradicts_the_journal_is_left_and_told(world: World) -> None:
    """Two files for one card: one container may be running with either; neither is harmed."""
    other = world.files()[FILE].replace("uid-one", "uid-two").replace('"one', '"two')
    (world.root / "cdi" / "gcu.enflame.com-claim-uid-two.json").write_text(other)
    agent = world.boot()
    report = agent.recover()
    assert set(report.failed) == {"uid-two"}
    assert "team/one" in str(report.failed["uid-two"])
    assert agent.held() == {"uid-one": "prepared"}
    assert len(world.files()) == 2
    assert agent.preparer.unprepare([ClaimRef("team", "two", "uid-two")]) == {"uid-two": None}
    assert set(world.files()) == {FILE}


def test_a_card_that_is_lost_does_not_stop_the_start(world: World) -> None:
    world.reboot()
    world.machine.lost.add(CARDS[0])
    agent = world.boot()
    assert "lost" in str(agent.recover().failed["uid-one"])
    world.machine.lost.clear()
    assert agent.preparer.prepare([ONE]).keys() == {"uid-one"}
    assert set(world.files()) == {FILE}


def test_a_file_that_shows_another_card_than_its_own_is_taken_in_for_its_own(world: World) -> None:
    """No agent wrote it so: it was damaged, or somebody altered it. Nothing of it ends a start."""
    path = world.root / "cdi" / FILE
    before = world.files()
    path.write_text(before[FILE].replace(f'sees\\":[\\"{CARDS[0]}', f'sees\\":[\\"{CARDS[1]}'))
    assert world.files() != before
    shutil.rmtree(world.root / "state")
    for _ in range(2):
        agent = world.boot()
        assert agent.recover().failed == {}
    assert agent.held() == {"uid-one": "prepared"}
    assert world.files() == before


def test_claims_of_one_card_are_undone_one_after_the_other() -> None:
    """Where both hang, each card is waited for once, and not for each of its claims."""
    ledger = Ledger()
    for name, card in zip("abcd", (0, 1, 0, 1), strict=True):
        ref = ClaimRef.of(claim(name, result(card)))
        ledger = ledger.apply(record(ClaimStep.UNPREPARE_STARTED, ref, (hold(card),)))
    order: list[str] = []

    def recover(owner: ClaimRef, *, examine: bool) -> Outcome:
        order.append(owner.name)
        return Outcome.UNCHANGED

    manager = SimpleNamespace(uids_without_record=frozenset, recover=recover)
    journal = SimpleNamespace(snapshot=lambda: ledger)
    reconciler = NodeReconciler(
        claim_manager=cast("PreparedClaimManager", manager),
        journal=cast("Journal", journal),
        locks=cast("Locks", None),
        drs=cast("Drs", None),
    )
    reconciler.run(())
    assert order == ["a", "c", "b", "d"]
