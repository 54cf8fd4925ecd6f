"""A kill at every effect of an Allocate, of a release, and of the recovery from it.

Judged as for claims, from outside: the simulator's cards, the CDI directory, the journal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.model.mode import Mode
from tests.seed import DAY
from tests.unit.device_plugin.plugin_world import PluginWorld, ids
from tests.unit.node.effects import Crash, Kill
from tests.unit.node.world import CARDS, Agent

Step = Callable[[PluginWorld, Agent, Mode], None]

EVERY: Final = 6
"""So many days kill at every moment of a recovery."""

DEVICES = {
    Mode.WHOLE: [*ids(0, Mode.WHOLE, 0), *ids(1, Mode.WHOLE, 0)],
    Mode.SHARED: ids(0, Mode.SHARED, 1, 4),
    Mode.DRS: ids(0, Mode.DRS, 0, 1, 2),
}
OTHER = ids(1, Mode.DRS, 0)
"""Another container's, which must not notice anything; not beside whole cards."""


def allocate(world: PluginWorld, agent: Agent, mode: Mode) -> None:
    world.allocator(agent).allocate(mode, DEVICES[mode])


def release(world: PluginWorld, agent: Agent, mode: Mode) -> None:
    """The kubelet knows of the other container only."""
    world.recorded = [frozenset(OTHER)]
    garbage_collector = world.garbage_collector(agent)
    garbage_collector.run_once()
    garbage_collector.run_once()


def replace(world: PluginWorld, agent: Agent, mode: Mode) -> None:
    """The kubelet gives a device of a container that has ended to another one."""
    world.recorded = [frozenset(OTHER)]
    world.allocator(agent).allocate(mode, DEVICES[mode][:1])


def ready(root: Path, mode: Mode, step: Step) -> PluginWorld:
    """A node that is where the step begins."""
    world = PluginWorld(root)
    agent = world.start()
    world.learn(agent)
    if mode is not Mode.WHOLE:
        world.allocator(agent).allocate(Mode.DRS, OTHER)
    if step is not allocate:
        allocate(world, agent, mode)
    return world


def killed(world: PluginWorld, mode: Mode, step: Step, n: int) -> bool:
    """Run the step and kill it at its n-th moment; say whether it was killed."""
    agent = world.boot(kill := Kill())
    agent.recover()
    kill.n = len(kill.moments) + n
    try:
        step(world, agent, mode)
    except Crash:
        return True
    return False


def check(world: PluginWorld, agent: Agent) -> None:
    """The invariants at rest."""
    ledger = agent.journal.snapshot()
    held = agent.held()
    assert set(held.values()) <= {"prepared"}
    assert set(world.files()) == {f"gcu.enflame.com-claim-{uid}.json" for uid in held}
    for address in CARDS[:2]:
        card = world.tool.card(str(address))
        owned = sorted(one.uuid or "" for one in ledger.instances(address))
        assert sorted(there.uuid for there in card.instances) == owned
        modes = {hold.mode for _, hold in ledger.holders_of(address)}
        assert (card.virtualization == "DRS") == (modes == {Mode.DRS})
        assert len(modes) <= 1


def at_rest(world: PluginWorld, effects: Effects = NO_FAULTS) -> Agent:
    """An agent that has started, and looked at the node once."""
    agent = world.start(effects)
    world.reconcile(agent)
    return agent


@pytest.mark.parametrize("reboots", [False, True], ids=["", "and a reboot"])
@pytest.mark.parametrize("again", [allocate, release], ids=lambda step: f"then {step.__name__}")
@pytest.mark.parametrize("step", [allocate, release, replace], ids=lambda step: step.__name__)
@pytest.mark.parametrize("mode", list(Mode))
def test_a_kill_at_every_moment_is_recovered_from(
    fast_path: Path, mode: Mode, step: Step, again: Step, reboots: bool
) -> None:
    for n in itertools.count(1):
        world = ready(fast_path / f"{n}", mode, step)
        dead = killed(world, mode, step, n)
        if reboots:
            world.reboot()
        agent = at_rest(world)
        check(world, agent)
        again(world, agent, mode)
        if step is replace:
            release(world, agent, mode)
        check(world, agent)
        others = 0 if mode is Mode.WHOLE else 1
        ours = 1 if again is allocate and step is not replace else 0
        assert len(agent.held()) == others + ours
        if not dead:
            break
    assert n > (20 if mode is Mode.DRS else 4)


@pytest.mark.parametrize("step", [allocate, release], ids=lambda step: step.__name__)
def test_a_kill_in_the_recovery_from_a_kill(fast_path: Path, step: Step) -> None:
    """Every moment of the step, and of each recovery one in `EVERY`, by turns."""
    recoveries = 0
    for n in itertools.count(1):
        dead = True
        for deaths in itertools.count(1 + (n + DAY) % EVERY, EVERY):
            world = ready(fast_path / f"{n}-{deaths}", Mode.DRS, step)
            dead = killed(world, Mode.DRS, step, n)
            try:
                at_rest(world, Kill(deaths))
            except Crash:
                recoveries += 1
            else:
                break
            check(world, at_rest(world))
        if not dead:
            break
    assert recoveries > 40
