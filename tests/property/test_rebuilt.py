"""Whatever happens to the journal's bytes, a running pod keeps its instance, and nobody else gets
its card: what was lost is rebuilt from the CDI file and the card."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.recovery.reconciler import recover_all
from tests.unit.node.drs_world import DrsWorld, errors, instance, tool, whole
from tests.unit.node.world import CARDS

ONE = str(CARDS[0])
Damage = Callable[[bytes], Iterator[bytes]]


@dataclass
class Before:
    """A node with a prepared DRS claim, and its journal's bytes."""

    world: DrsWorld
    ref: ClaimRef
    journal: Path
    content: bytes
    files: dict[str, str]

    def check(self, damaged: bytes) -> None:
        """An agent that starts with that journal has the claim, and its card is nobody else's."""
        self.journal.write_bytes(damaged)
        for path in self.journal.parent.glob("journal.damaged-*"):
            path.unlink()
        there = self.world.tool.instances(ONE)
        agent = self.world.boot()
        agent.journal.open()
        agent.journal.open()
        recover_all(agent.preparer.claim_manager, agent.journal)
        assert agent.held() == {self.ref.uid: "prepared"}
        assert self.world.reconcile(agent, adopt=True).foreign == {}
        assert self.world.tool.instances(ONE) == there
        assert self.world.files() == self.files
        agent.journal.close()


@pytest.fixture
def before(fast_path: Path) -> Before:
    world = DrsWorld(fast_path, tool=tool())
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    agent.journal.close()
    world.start().journal.close()  # compacted: the claim's records of its way are gone
    journal = fast_path / "state" / "journal"
    return Before(world, ref, journal, journal.read_bytes().rstrip(b"\0"), world.files())


# Each place of a journal by itself is tried in test_journal_damage, where it costs a hundredth.
def flipped(content: bytes) -> Iterator[bytes]:
    for place in range(0, len(content), 7):
        yield content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :]


def cut(content: bytes) -> Iterator[bytes]:
    yield from (content[:length] for length in range(0, len(content), 11))


def zeroed(content: bytes) -> Iterator[bytes]:
    """What was synced when the file was made is no torn record."""
    for length in range(0, len(content), 11):
        yield content[:length].ljust(len(content) + 1, b"\0")


@pytest.mark.parametrize("damage", [flipped, cut, zeroed], ids=["flipped", "cut", "zeroed"])
def test_damage(before: Before, damage: Damage) -> None:
    for damaged in damage(before.content):
        before.check(damaged)


def test_a_folder_that_is_gone_altogether(before: Before) -> None:
    shutil.rmtree(before.journal.parent)
    before.journal.parent.mkdir()
    agent = before.world.start()
    assert agent.held() == {before.ref.uid: "prepared"}
    [error] = errors(agent, before.world.api.add(whole("b", 0)))
    assert "team/a" in error
    assert agent.preparer.unprepare([before.ref]) == {before.ref.uid: None}
    assert before.world.tool.instances(ONE) == ()
