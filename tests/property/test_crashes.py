"""A kill at every effect of prepare and unprepare, and of the recovery from it.

The objects of the killed agent are dropped, as the kernel would; the files stay. Afterwards what
is outside must agree: a CDI file for every prepared claim and for no other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError
from tests.unit.node.effects import Crash, Kill
from tests.unit.node.world import Agent, World, claim, pod, result

Step = Callable[[Agent, list[ClaimRef]], object]


def prepare(agent: Agent, refs: list[ClaimRef]) -> object:
    return agent.preparer.prepare(refs)


def unprepare(agent: Agent, refs: list[ClaimRef]) -> object:
    return agent.preparer.unprepare(refs)


def new_world(root: Path, *, claims: int = 2) -> tuple[World, list[ClaimRef]]:
    """A pod with claims in one container, the first of two cards."""
    world = World(root)
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x", "y"))
    refs = [
        world.api.add(claim("a", result(0), result(1))),
        world.api.add(claim("b", result(2))),
    ]
    return world, refs[:claims]


def moments(root: Path, step: Step, *, claims: int = 2) -> list[str]:
    """The moments before and after every effect of an undisturbed step."""
    world, refs = new_world(root, claims=claims)
    watching = Kill()
    agent = world.start(watching)
    if step is unprepare:
        prepare(agent, refs)
    begin = len(watching.moments)
    step(agent, refs)
    return watching.moments[begin:]


def killed(world: World, refs: list[ClaimRef], step: Step, n: int) -> bool:
    """Run the step and kill it at its n-th moment; say whether it was killed."""
    if step is unprepare:
        prepare(world.start(), refs)
    kill = Kill()
    agent = world.start(kill)
    kill.n = len(kill.moments) + n
    try:
        step(agent, refs)
    except Crash:
        return True
    return False


def check(world: World, agent: Agent) -> None:
    held = agent.held()
    assert set(held.values()) <= {"prepared"}
    assert set(world.files()) == {f"gcu.enflame.com-claim-{uid}.json" for uid in held}
    locks = world.root / "state" / "locks"
    assert not list(locks.glob("claim-*"))


def succeed(answers: object) -> None:
    assert isinstance(answers, dict)
    assert not [answer for answer in answers.values() if isinstance(answer, GcuError)]


@pytest.mark.parametrize("again", [prepare, unprepare], ids=lambda step: f"then {step.__name__}")
@pytest.mark.parametrize("step", [prepare, unprepare], ids=lambda step: step.__name__)
def test_a_kill_at_every_moment_is_recovered_from(fast_path: Path, step: Step, again: Step) -> None:
    count = len(moments(fast_path / "watched", step))
    assert count >= 12
    for n in range(1, count + 1):
        world, refs = new_world(fast_path / f"{n}")
        assert killed(world, refs, step, n)
        agent = world.start()
        check(world, agent)
        succeed(again(agent, refs))
        check(world, agent)
        assert set(agent.held()) == ({"uid-a", "uid-b"} if again is prepare else set())
    world, refs = new_world(fast_path / "beyond")
    assert not killed(world, refs, step, count + 1)


@pytest.mark.parametrize("step", [prepare, unprepare], ids=lambda step: step.__name__)
def test_a_kill_in_the_recovery_from_a_kill(fast_path: Path, step: Step) -> None:
    """Every moment of the step, and in the recovery that follows every moment again."""
    recoveries = 0
    for n in range(1, len(moments(fast_path / "watched", step, claims=1)) + 1):
        for deaths in itertools.count(1):
            world, refs = new_world(fast_path / f"{n}-{deaths}", claims=1)
            assert killed(world, refs, step, n)
            try:
                world.start(Kill(deaths))
            except Crash:
                recoveries += 1
            else:
                break
            agent = world.start()
            check(world, agent)
            succeed(prepare(agent, refs))
            check(world, agent)
    assert recoveries > 50


@pytest.mark.parametrize("step", [prepare, unprepare], ids=lambda step: step.__name__)
def test_a_kill_followed_by_a_reboot(fast_path: Path, step: Step) -> None:
    for n in range(1, len(moments(fast_path / "watched", step)) + 1):
        world, refs = new_world(fast_path / f"{n}")
        killed(world, refs, step, n)
        if (world.root / "cdi").exists():
            world.reboot()
        agent = world.start()
        check(world, agent)
        succeed(prepare(agent, refs))
        check(world, agent)


def test_the_points_of_a_claims_life(fast_path: Path) -> None:
    """The list that docs/dev/journal.md gives."""
    world = World(fast_path)
    effects = Kill()
    agent = world.start(effects)
    ref = world.api.add(claim("one", result(0)))
    begin = len(effects.moments)
    agent.preparer.prepare([ref])
    agent.preparer.unprepare([ref])
    before = [name for name in effects.moments[begin:] if name.startswith("before")]
    assert [name.removeprefix("before ") for name in before] == [
        "journal.append",
        "journal.sync",
        "cdi.write",
        "cdi.rename",
        "cdi.remove",
        "journal.append",
        "journal.sync",
    ]


def test_a_crash_is_nothing_that_the_product_catches() -> None:
    assert not issubclass(Crash, Exception)
    assert issubclass(Kill, Effects)
