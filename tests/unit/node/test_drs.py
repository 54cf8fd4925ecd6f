"""DRS instances for claims, judged by the simulator's own state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from tests.unit.node.drs_world import DrsWorld, edits, errors, instance, share, slices, tool, whole
from tests.unit.node.world import CARDS, Agent, claim, pod, result

ONE = str(CARDS[0])


def test_an_instance_for_a_claim(world: DrsWorld, agent: Agent) -> None:
    ref = world.api.add(instance("a", 0, 3))
    prepared = agent.preparer.prepare([ref])["uid-a"]
    (there,) = world.tool.instances(ONE)
    assert there.profile == "3g.20gb"
    assert not isinstance(prepared, GcuError)
    assert prepared[0].cdi_ids == ("gcu.enflame.com/claim=uid-a-drs-0000-0d-00-0-share-a",)
    assert prepared[0].share_id == "share-a"
    assert edits(world, "a") == [
        {
            "env": ["ENFLAME_VISIBLE_DEVICES=0", f"TOPS_VISIBLE_DEVICES=DRS-{there.uuid}"],
            "deviceNodes": [{"path": "/dev/gcu0", "permissions": "rw"}],
        }
    ]
    assert agent.preparer.prepare([ref])["uid-a"] == prepared
    assert world.start().preparer.prepare([ref])["uid-a"] == prepared
    assert world.tool.instances(ONE) == (there,)
    assert agent.preparer.unprepare([ref]) == {"uid-a": None}
    assert (world.tool.instances(ONE), world.files(), agent.held()) == ((), {}, {})
    assert world.tool.card(ONE).virtualization == "Disable"
    assert world.tool.changes() == ["1 on", "1 create-instance 1", "1 destroy-instance 1", "1 off"]


def test_two_sizes_on_one_card(world: DrsWorld, agent: Agent) -> None:
    refs = [world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 0, 3))]
    assert errors(agent, *refs) == ["", ""]
    assert {i.profile for i in world.tool.instances(ONE)} == {"1g.6gb", "3g.20gb"}
    agent.preparer.unprepare([refs[0]])
    assert [i.profile for i in world.tool.instances(ONE)] == ["3g.20gb"]
    assert world.tool.card(ONE).virtualization == "DRS"


def test_drs_mode_is_not_switched_on_where_an_instance_shows_that_it_is(
    world: DrsWorld, agent: Agent
) -> None:
    assert errors(agent, world.api.add(instance("a", 0, 1))) == [""]
    world.tool.calls.clear()
    assert errors(agent, world.api.add(instance("b", 0, 3))) == [""]
    create = ("-i", "1", "--drs", "--create-instance", "1")
    assert world.tool.calls == [("-i", "1", "-L"), create, ("-i", "1", "-L")]


def test_drs_mode_is_switched_on_where_an_instance_seems_to_show_that_it_is(
    world: DrsWorld, agent: Agent
) -> None:
    """As a firmware could that keeps instances, and not the mode, over a reset."""
    assert errors(agent, world.api.add(instance("a", 0, 1))) == [""]
    world.tool.set_card(ONE, virtualization="Disable")
    assert errors(agent, world.api.add(instance("b", 0, 3))) == [""]
    assert {i.profile for i in world.tool.instances(ONE)} == {"1g.6gb", "3g.20gb"}
    assert world.tool.changes()[2:] == ["1 create-instance 1", "1 on", "1 create-instance 1"]


def test_it_is_also_where_a_create_says_success_and_makes_nothing(
    world: DrsWorld, agent: Agent
) -> None:
    assert errors(agent, world.api.add(instance("a", 0, 1))) == [""]
    world.tool.set_fault("create-reports-success-but-makes-nothing", times=1)
    assert errors(agent, world.api.add(instance("b", 0, 3))) == [""]
    assert world.tool.changes()[2:] == ["1 create-instance 1", "1 on", "1 create-instance 1"]


def test_a_tool_that_prints_no_uuid(tmp_path: Path) -> None:
    world = DrsWorld(tmp_path, tool=tool(efsmi={"instanceRows": False}))
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    assert "TOPS_VISIBLE_DEVICES=DRS-1:1" in edits(world, "a")[0]["env"]
    world.tool.set_card(ONE, efsmi_index=7, minor=5)
    assert errors(agent, ref) == [""]
    assert edits(world, "a")[0]["env"] == [
        "ENFLAME_VISIBLE_DEVICES=5",
        "TOPS_VISIBLE_DEVICES=DRS-7:1",
    ]
    agent.preparer.unprepare([ref])
    assert world.tool.instances(ONE) == ()


def test_shared_slices_are_counted(world: DrsWorld, agent: Agent) -> None:
    two, three, more = (
        world.api.add(slices("a", 0, 2)),
        world.api.add(slices("b", 0, 3)),
        world.api.add(slices("c", 0, 2)),
    )
    assert errors(agent, two, three) == ["", ""]
    assert edits(world, "a")[0]["env"] == ["ENFLAME_VISIBLE_DEVICES=0"]
    (error,) = errors(agent, more)
    assert "2 of the 6 slices of card 0000:0d:00.0, and 1 are left" in error
    assert "claim team/a holds 2, claim team/b holds 3" in error
    agent.preparer.unprepare([two])
    assert errors(agent, more) == [""]
    assert world.tool.changes() == []


def test_sizes_are_counted_once_they_are_known(world: DrsWorld, agent: Agent) -> None:
    assert errors(agent, world.api.add(instance("a", 0, 6))) == [""]
    (error,) = errors(agent, world.api.add(instance("b", 0, 1)))
    assert "and 0 are left: claim team/a holds 6" in error
    assert len(world.tool.instances(ONE)) == 1


@pytest.mark.parametrize("first", [whole, slices, instance], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("second", [whole, slices, instance], ids=lambda mode: mode.__name__)
def test_a_card_is_in_one_mode_at_a_time(
    world: DrsWorld, agent: Agent, first: Any, second: Any
) -> None:
    def make(kind: Any, name: str) -> dict[str, Any]:
        made: dict[str, Any] = kind(name, 0) if kind is whole else kind(name, 0, 1)
        return made

    holder, other = world.api.add(make(first, "a")), world.api.add(make(second, "b"))
    (nothing, error) = errors(agent, holder, other)
    assert nothing == ""
    if first is second and first is not whole:
        assert error == ""
        return
    assert "claim team/a (UID uid-a) holds it in mode" in error
    agent.preparer.unprepare([holder])
    assert errors(agent, other) == [""]


def test_requests_of_one_claim_on_one_card(world: DrsWorld, agent: Agent) -> None:
    """For a pod of two containers with an instance each."""
    both = claim(
        "a", share(0, Mode.DRS, 1, "left", "left"), share(0, Mode.DRS, 3, "right", "right")
    )
    world.api.pods["team", "pod"] = pod({"x": "a"}, ("x/left",), ("x/right",))
    ref = world.api.add(both)
    assert errors(agent, ref) == [""]
    uuids = {i.profile: i.uuid for i in world.tool.instances(ONE)}
    assert [edit["env"][1] for edit in edits(world, "a")] == [
        f"TOPS_VISIBLE_DEVICES=DRS-{uuids['1g.6gb']}",
        f"TOPS_VISIBLE_DEVICES=DRS-{uuids['3g.20gb']}",
    ]
    agent.preparer.unprepare([ref])
    assert world.tool.instances(ONE) == ()


@pytest.mark.parametrize(
    ("results", "containers"),
    [
        pytest.param(
            [share(0, Mode.DRS, 1, "a"), share(1, Mode.DRS, 1, "b")], [("x",)], id="a count of two"
        ),
        pytest.param(
            [share(0, Mode.DRS, 1, "a", "r"), share(0, Mode.DRS, 1, "b", "s")],
            [("x",)],
            id="two requests",
        ),
        pytest.param(
            [share(0, Mode.DRS, 1, "a", "r"), result(1, "s")],
            [("x/r", "x/s")],
            id="another card beside it",
        ),
    ],
)
def test_one_container_takes_one_instance(
    world: DrsWorld, agent: Agent, results: list[dict[str, Any]], containers: list[tuple[str, ...]]
) -> None:
    world.api.pods["team", "pod"] = pod({"x": "a"}, *containers)
    (error,) = errors(agent, world.api.add(claim("a", *results)))
    assert "can name one instance only" in error
    assert world.tool.changes() == []


def test_a_size_without_profile(world: DrsWorld, agent: Agent) -> None:
    (error,) = errors(agent, world.api.add(instance("a", 0, 2)))
    assert "no profile has size 2" in error
    assert "1g.6gb,3g.20gb,6g.40gb" in error
    assert (world.tool.instances(ONE), agent.held()) == ((), {})


def test_profiles_are_listed_of_empty_cards_only(world: DrsWorld, agent: Agent) -> None:
    def listed() -> list[str]:
        return [call[1] for call in world.tool.calls if "--list-profile" in call]

    both = claim(
        "both", *(share(0, Mode.DRS, 1, f"share-{name}", name) for name in ("first", "second"))
    )
    first = world.api.add(both)
    world.api.pods["team", "pod"] = pod({"x": "both"}, ("x/first",), ("x/second",))
    assert errors(agent, first, world.api.add(instance("b", 0, 1))) == ["", ""]
    assert listed() == ["1"]
    assert errors(agent, world.api.add(instance("c", 1, 1))) == [""]
    assert listed() == ["1", "0"]
