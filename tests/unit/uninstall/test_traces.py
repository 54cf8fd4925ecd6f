"""What of the driver is removed from a node, and what keeps it there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.model.claim import ClaimRef
from dra_driver.model.mode import Mode
from dra_driver.model.owner import Grant, Remnant
from dra_driver.model.plugin_device import PluginDevice
from dra_driver.node.cdi import Injection, render
from dra_driver.node.records import CardKind, Kind, Record, card_record, decode, record
from dra_driver.node.residence import Residence
from dra_driver.uninstall.traces import InUse
from tests.unit.node.journals import forgotten, prepared, ref
from tests.unit.node.world import CARDS, card, hold
from tests.unit.uninstall.node import LeftNode

DRS = hold(0, mode=Mode.DRS)
REMNANT = Remnant.of(ref(1), ())
GRANT = Grant((PluginDevice(CARDS[0], Mode.WHOLE, 0),), 1, "answer")


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> LeftNode:
    return LeftNode(tmp_path_factory.mktemp("n"))  # a short path


def test_nothing_is_left_of_a_driver_that_holds_nothing(node: LeftNode) -> None:
    """Damaged journals that were kept for a look go, too; what others have stays."""
    node.serve(prepared(1), forgotten(1))
    (node.cdi_dir / "gcu.enflame.com-claim-a.json.new").touch()
    (node.cdi_dir / "gcu.enflame.com-claim-b.json").write_text("{")
    assert len(node.ours()) > 8
    assert node.traces.remove() == ""
    assert node.ours() == set()
    assert node.traces.remove() == "", "once more"
    assert node.ours() == set()


@pytest.mark.parametrize(
    ("left", "words"),
    [
        pytest.param(prepared(1), f"claim team/claim-1 (card {CARDS[1]})", id="claim"),
        pytest.param(
            record(Kind.INTENT, ref(1), (DRS,)),
            f"claim team/claim-1 (card {CARDS[0]})",
            id="intent",
        ),
        pytest.param(
            record(Kind.UNPREPARING, REMNANT, (DRS,)),
            f"what claim team/claim-1 left (card {CARDS[0]})",
            id="remnant",
        ),
        pytest.param(
            record(Kind.PREPARED, GRANT, (hold(0),)), f"(card {CARDS[0]})", id="container"
        ),
        pytest.param(
            record(Kind.PREPARED, ref(1), (hold(0, admin_access=True),)),
            "claim team/claim-1",
            id="administrative access",
        ),
        pytest.param(
            card_record(CardKind.DRS_ON, CARDS[2]), f"the DRS mode of card {CARDS[2]}", id="mode"
        ),
        pytest.param(
            decode(b'{"kind":"invented"}'), "what a newer version wrote", id="a newer version's"
        ),
    ],
)
def test_all_stays_where_the_journal_accounts_for_something(
    node: LeftNode, left: Record, words: str
) -> None:
    node.serve(left)
    before = node.everything()
    why = node.traces.remove()
    assert why.startswith(f"{node.state} stays: it accounts for ")
    assert words in why
    assert node.everything() == before


def test_of_much_that_is_held_a_part_is_told(node: LeftNode) -> None:
    node.serve(*(prepared(number) for number in range(8)))
    assert node.traces.remove().endswith("claim-4 (card 0000:0d:00.0), 3 more")


def test_all_stays_where_a_container_may_run_with_a_claim_that_the_journal_lost(
    node: LeftNode,
) -> None:
    """As recovery sees it, so that a later install takes the claim in."""
    node.serve()
    one, cards = ClaimRef("team", "one", "uid-one"), {CARDS[0]: card(CARDS[0], 0)}
    node.cdi.write(one.uid, render(one, (hold(0),), cards, Injection.CDI))
    before = node.everything()
    assert f"claim team/one (card {CARDS[0]})" in node.traces.remove()
    assert node.everything() == before


def test_all_stays_where_the_journal_is_damaged(node: LeftNode) -> None:
    node.serve()
    (node.state / "journal").write_bytes(b"?" + (node.state / "journal").read_bytes()[1:])
    before = node.everything()
    assert "is damaged" in node.traces.remove()
    assert node.everything() == before


def test_nothing_is_touched_while_there_is_an_agent(node: LeftNode) -> None:
    node.serve()
    agent = Residence(node.state)
    agent.enter()
    before = node.everything()
    with pytest.raises(InUse):
        node.traces.remove()
    assert node.everything() == before
    os.close(agent._fd)
    assert node.traces.remove() == ""


@pytest.mark.parametrize(
    "socket",
    [
        lambda n: n.sockets.service,
        lambda n: n.sockets.registration,
        lambda n: n.plugins.socket("drs", ""),
    ],
    ids=["service", "registration", "device plugin"],
)
def test_who_is_heard_is_an_agent(node: LeftNode, socket: Callable[[LeftNode], Path]) -> None:
    """Whatever it has locked."""
    node.state.mkdir(parents=True)
    with node.listening(socket(node)), pytest.raises(InUse):
        node.traces.remove()
    assert node.traces.remove() == ""


class Killed(BaseException):
    """Where the process is killed."""


def test_a_removal_that_was_killed_is_finished_by_the_next(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever is left by then, the journal is with it: an agent that comes needs no rebuild."""
    for last in range(30):
        node = LeftNode(tmp_path_factory.mktemp("n"))
        node.serve()
        with pytest.MonkeyPatch.context() as patched:
            for name in ("unlink", "rmdir"):
                patched.setattr(os, name, _killed_after(last, getattr(os, name), patched))
            try:
                assert node.traces.remove() == ""
            except Killed:
                assert "journal" in node.ours() or node.ours() <= {node.state.name}
            else:
                assert last > 8
                return
        assert node.traces.remove() == ""
        assert node.ours() == set()


def _killed_after(
    number: int, act: Callable[..., None], done: pytest.MonkeyPatch
) -> Callable[..., None]:
    calls = vars(done).setdefault("calls", [])  # of both functions

    def call(*path: object, **more: object) -> None:
        if len(calls) == number:
            raise Killed
        calls.append(path)
        act(*path, **more)

    return call


def test_what_does_not_go_is_told(node: LeftNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.serve()

    def refuse(path: Path) -> None:
        raise OSError(30, os.strerror(30), str(path))

    monkeypatch.setattr(Path, "rmdir", refuse)
    assert node.traces.remove() == f"{node.state} cannot be removed: Read-only file system"
