"""A claim that is allocated anew before the kubelet had it unprepared, as its node was down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.errors import KubeError
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from tests.unit.node.drs_world import DrsWorld, errors, share, tool, whole
from tests.unit.node.effects import Crash, Kill
from tests.unit.node.world import CARDS, Agent, claim, result

FILE = "gcu.enflame.com-claim-uid-a.json"
MORE_THAN_ENOUGH = 80
REF = ClaimRef("team", "a", "uid-a")

KINDS = {
    "whole": (result(0), result(1)),
    "slices": (share(0, Mode.SHARED, 2, "s1"), share(1, Mode.SHARED, 2, "s2")),
    "drs": (share(0, Mode.DRS, 1, "s1"), share(1, Mode.DRS, 1, "s2")),
    "drs on the same card": (share(0, Mode.DRS, 6, "s1"), share(0, Mode.DRS, 6, "s2")),
    "drs to whole": (share(0, Mode.DRS, 1, "s1"), result(0)),
    "admin access": (result(0, adminAccess=True), result(1, adminAccess=True)),
}
kinds = pytest.mark.parametrize(("former", "present"), KINDS.values(), ids=KINDS)


def answered(agent: Agent) -> list[str]:
    """The CDI names; raises the error that is answered instead."""
    answer = agent.preparer.prepare([REF])[REF.uid]
    if isinstance(answer, GcuError):
        raise answer
    return [name.partition("=")[2] for device in answer for name in device.cdi_ids]


def shown(world: DrsWorld) -> Mapping[str, Any]:
    """What the runtime is told, by name."""
    devices = json.loads(world.files()[FILE])["devices"]
    return {device["name"]: device["containerEdits"] for device in devices}


def held_before(world: DrsWorld, former: dict[str, Any]) -> tuple[Agent, list[str]]:
    """An agent that has prepared the former allocation, and the names that the kubelet knows."""
    agent = world.start()
    world.api.add(claim("a", former))
    return agent, answered(agent)


def check(world: DrsWorld, known: list[str], now: list[str]) -> None:
    """All names that the kubelet tells the runtime are there, and stand for what is allocated."""
    edits = shown(world)
    assert set(edits) == {*known, *now}
    assert all(edit == edits[now[0]] for edit in edits.values())


def made(world: DrsWorld) -> list[int]:
    """The instances of each card."""
    return [len(world.tool.instances(str(card))) for card in CARDS[:2]]


@kinds
@pytest.mark.parametrize("restarted", [True, False])
def test_the_present_allocation_is_answered(
    world: DrsWorld, former: dict[str, Any], present: dict[str, Any], restarted: bool
) -> None:
    agent, known = held_before(world, former)
    world.api.add(claim("a", present))
    agent = world.start() if restarted else agent
    now = answered(agent)
    assert now == [name for name in now if name not in known]
    check(world, known, now)
    assert sum(made(world)) == ("drs-" in now[0])
    assert answered(agent) == now
    assert answered(world.start()) == now
    check(world, known, now)
    assert world.reconcile(agent).foreign == {}
    assert agent.preparer.unprepare([REF]) == {REF.uid: None}
    assert (agent.held(), world.files(), made(world)) == ({}, {}, [0, 0])
    assert answered(agent) == now
    assert set(shown(world)) == set(now), "the kubelet has forgotten the former names"


def test_the_former_card_stays_out_of_drs_mode(world: DrsWorld) -> None:
    """While nothing but names is left, whatever the journal is compacted to."""
    agent, _ = held_before(world, share(0, Mode.DRS, 1, "s1"))
    assert errors(agent, world.api.add(whole("b", 1))) == [""]
    world.api.add(claim("a", share(1, Mode.DRS, 1, "s2")))
    with pytest.raises(GcuError, match="team/b"):
        answered(agent)
    assert errors(agent, world.api.add(whole("c", 0))) == [""]
    for _ in range(3):
        assert agent.journal.snapshot().switched == frozenset()
        agent = world.start()


def test_the_former_card_is_another_claims(world: DrsWorld) -> None:
    agent, _ = held_before(world, result(0))
    world.api.add(claim("a", result(1)))
    other = world.api.add(whole("b", 0))
    assert "team/a" in errors(agent, other)[0]
    answered(agent)
    assert errors(agent, other) == [""]


def test_back_and_forth(world: DrsWorld) -> None:
    agent, known = held_before(world, result(0))
    for card in (1, 0, 1):
        world.api.add(claim("a", result(card)))
        known += answered(agent)
        check(world, known, known[-1:])


@kinds
def test_killed_at_any_moment_of_it(
    tmp_path: Path, former: dict[str, Any], present: dict[str, Any]
) -> None:
    for number in range(1, MORE_THAN_ENOUGH):
        if not killed_and_recovered(tmp_path / str(number), number, former, present):
            return
    pytest.fail("a prepare has no end")


def killed_and_recovered(
    root: Path, number: int, former: dict[str, Any], present: dict[str, Any]
) -> bool:
    """Whether there is a moment of that number, at which the agent is killed."""
    world = DrsWorld(root, tool=tool())
    agent, known = held_before(world, former)
    agent.journal.close()
    world.api.add(claim("a", present))
    agent = world.start(kill := Kill())
    kill.n = len(kill.moments) + number
    try:
        answered(agent)
    except Crash:
        agent.journal.close()
    else:
        agent.journal.close()
        return False
    agent = world.start()
    world.reconcile(agent)
    assert (FILE in world.files()) == (agent.held()[REF.uid] == "prepared")
    now = answered(agent)
    check(world, known, now)
    assert sum(made(world)) == ("drs-" in now[0])
    assert world.reconcile(agent).foreign == {}
    assert agent.preparer.unprepare([REF]) == {REF.uid: None}
    assert (agent.held(), world.files(), made(world)) == ({}, {}, [0, 0])
    agent.journal.close()
    return True


@pytest.mark.parametrize("mode", [Mode.SHARED, Mode.DRS])
def test_names_outlive_a_prepare_that_fails(world: DrsWorld, mode: Mode) -> None:
    agent, known = held_before(world, share(0, mode, 1, "s1"))
    other = world.api.add(whole("b", 1))
    assert errors(agent, other) == [""]
    world.api.add(claim("a", share(1, mode, 1, "s2")))
    for _ in range(2):
        with pytest.raises(GcuError, match="team/b"):
            answered(agent)
        assert (made(world), FILE in world.files()) == ([0, 0], False)
        assert world.reconcile(agent).failed == {}
        agent = world.start()
    third = world.api.add(whole("c", 0))
    assert errors(agent, third) == [""], "what the claim had is free"
    assert agent.preparer.unprepare([other]) == {other.uid: None}
    check(world, known, answered(agent))


def test_names_outlive_a_create_that_fails(world: DrsWorld) -> None:
    agent, known = held_before(world, share(0, Mode.DRS, 1, "s1"))
    world.api.add(claim("a", share(1, Mode.DRS, 1, "s2")))
    world.tool.set_fault("create-fails", times=2)
    for _ in range(2):
        with pytest.raises(GcuError, match="injected"):
            answered(agent)
        assert (made(world), world.files()) == ([0, 0], {})
    check(world, known, answered(agent))


def test_an_instance_that_cannot_be_destroyed_is_left_to_a_look(world: DrsWorld) -> None:
    """As after unprepare: no pod waits for a card that another claim had."""
    agent, known = held_before(world, share(0, Mode.DRS, 1, "s1"))
    world.api.add(claim("a", share(1, Mode.DRS, 1, "s2")))
    world.tool.set_fault("destroy-fails")
    for _ in range(2):
        with pytest.raises(GcuError, match="still there"):
            answered(agent)
    check(world, known, answered(agent))
    assert made(world) == [1, 1]
    world.tool.clear_faults()
    world.reconcile(agent)
    assert made(world) == [0, 1]
    assert agent.held() == {REF.uid: "prepared"}


@pytest.mark.parametrize("end", ["prepare", "unprepare"])
def test_an_unprepare_that_was_begun_keeps_the_names(world: DrsWorld, end: str) -> None:
    """The kubelet knows them until it has an answer."""
    agent, known = held_before(world, share(0, Mode.DRS, 1, "s1"))
    world.tool.set_fault("destroy-fails", times=1)
    assert isinstance(agent.preparer.unprepare([REF])[REF.uid], GcuError)
    world.api.add(claim("a", share(1, Mode.DRS, 1, "s2")))
    if end == "prepare":
        check(world, known, answered(agent))
    else:
        assert agent.preparer.unprepare([REF]) == {REF.uid: None}
        assert agent.held() == {}


@pytest.mark.parametrize("why", ["gone", "made anew", "not reachable", "odd"])
def test_what_runs_is_answered_where_nothing_says_otherwise(world: DrsWorld, why: str) -> None:
    agent, known = held_before(world, result(0))
    files = world.files()
    if why == "gone":
        world.api.claims.clear()
    elif why == "made anew":
        world.api.add(claim("a", result(1), uid="uid-other"))
    elif why == "odd":
        world.api.claims["team", "a"] = {"metadata": {}}
    else:
        world.api.get_claim = _away  # type: ignore[assignment]
    assert answered(agent) == known
    assert world.files() == files


def _away(_namespace: str, _name: str) -> dict[str, Any]:
    raise KubeError("the API server is away")


def test_a_claim_that_was_only_released_is_refused(world: DrsWorld) -> None:
    agent, _ = held_before(world, result(0))
    files = world.files()
    released = claim("a", result(0))
    del released["status"]["allocation"]
    world.api.add(released)
    with pytest.raises(GcuError, match="not allocated"):
        answered(agent)
    assert world.files() == files


def test_a_call_that_was_given_up_takes_nothing_back(world: DrsWorld) -> None:
    agent, _ = held_before(world, result(0))
    files = world.files()
    world.api.add(claim("a", result(1)))
    answer = agent.preparer.prepare([REF], is_cancelled=lambda: True)[REF.uid]
    assert "given up" in str(answer)
    assert (world.files(), agent.held()) == (files, {REF.uid: "prepared"})
