"""The program on each node: it waits for the agent's end, and says what came of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dra_driver.model.errors import Refused
from dra_driver.node.residence import Residence
from dra_driver.telemetry.program import Deadline
from dra_driver.uninstall.answers import NOTHING_LEFT
from dra_driver.uninstall.sweep import run, sweep
from tests.unit.node.journals import prepared
from tests.unit.uninstall.node import LeftNode


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> LeftNode:
    return LeftNode(tmp_path_factory.mktemp("n"))  # a short path


@pytest.fixture
def agent(node: LeftNode) -> Residence:
    found = Residence(node.state)
    found.enter()
    return found


def answer(node: LeftNode, path: Path, stop: threading.Event) -> str:
    environ = {"GCU_KUBELET_ROOT": str(node.kubelet), "GCU_CDI_DIR": str(node.cdi_dir)}
    run([f"--answer={path}", "--patience=0"], environ, stop)
    return path.read_text()


def test_its_last_words_are_what_is_left(node: LeftNode, tmp_path: Path) -> None:
    journal = node.serve(prepared(1))
    said = answer(node, tmp_path / "answer", threading.Event())
    assert said == node.traces.remove()
    assert "claim team/claim-1" in said
    (node.state / "journal").unlink()
    journal.close()
    assert answer(node, tmp_path / "answer", threading.Event()) == NOTHING_LEFT
    assert node.ours() == set()


def test_it_waits_for_the_end_of_the_agent(node: LeftNode, agent: Residence) -> None:
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            os.close(agent._fd)
        return False

    assert sweep(node.traces, deadline=Deadline(60), wait=wait) == ""
    assert len(waits) == 3
    assert node.ours() == set()


def test_an_agent_that_stays_keeps_its_folder(
    node: LeftNode, agent: Residence, tmp_path: Path
) -> None:
    """That of a release that was installed meanwhile, say."""
    said = answer(node, tmp_path / "answer", threading.Event())
    assert said == f"{node.state} stays: an agent of the driver runs on the node"
    assert node.ours() == {"gcu.enflame.com"}
    os.close(agent._fd)


def test_who_is_stopped_before_it_knows_says_nothing(
    node: LeftNode, agent: Residence, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="stopped before"):
        sweep(node.traces, deadline=Deadline(60), wait=lambda _: True)
    os.close(agent._fd)
