"""DRS on a simulated tool, whose own state is the judge."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import (
    CardGone,
    CreateMadeOther,
    CreateRefused,
    CreateUnclear,
    DestroyFailed,
    Drs,
    SwitchRefused,
)
from dra_driver.hardware.drs.locks import alone
from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.model.effects import Effects
from dra_driver.model.errors import HardwareError
from dra_driver.model.instance import Instance
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile
from dra_driver.simulator.machine import SimulatedMachine
from dra_driver.simulator.state import InstanceState as There
from tests.unit.memory_efsmi import MemoryEfsmi

ONE, TWO = "0000:0d:00.0", "0000:0e:00.0"
CARD = PciAddress.parse(ONE)
P1 = Profile("1g.6gb", 0, 6, 6860, 4)
P3 = Profile("3g.20gb", 1, 2, 20580, 12)


def drs(tool: MemoryEfsmi, root: Path, *, index: int | None = None) -> Drs:
    """What hangs while it changes the card keeps nobody from reading what it did. `index` is the
    one that the card probably has."""
    return Drs(tool, root, breaker=HungCardBreaker(60), indexes=lambda _: index)


def switched_on(root: Path, **keys: Any) -> tuple[MemoryEfsmi, Drs]:
    """Of two cards the first is in DRS mode."""
    tool = MemoryEfsmi.of(ONE, TWO, **keys)
    made = drs(tool, root)
    made.switch_on(CARD)
    return tool, made


@pytest.mark.parametrize(
    "efsmi",
    [
        pytest.param({}, id="today's tool"),
        pytest.param({"instanceRows": False}, id="a tool that prints no uuid"),
        pytest.param({"header": "DEV", "banner": False}, id="without banner"),
    ],
)
def test_the_life_of_two_instances(tmp_path: Path, efsmi: dict[str, Any]) -> None:
    tool, card = switched_on(tmp_path, efsmi=efsmi)
    assert [profile.name for profile in card.profiles(CARD)] == ["1g.6gb", "3g.20gb", "6g.40gb"]
    one = card.create(CARD, P1, card.instances(CARD))
    three = card.create(CARD, P3, card.instances(CARD))
    truth = {there.profile: there for there in tool.instances(ONE)}
    told = efsmi.get("instanceRows", True)
    assert one == Instance(1, "1g.6gb", truth["1g.6gb"].uuid if told else None)
    assert three == Instance(2, "3g.20gb", truth["3g.20gb"].uuid if told else None)
    assert set(card.instances(CARD)) == {one, three}
    card.destroy(CARD, one)
    assert card.instances(CARD) == (three,)
    card.destroy(CARD, one)
    card.destroy(CARD, three)
    card.switch_off(CARD)
    assert tool.card(ONE).virtualization == "Disable"
    assert not [change for change in tool.changes() if change.startswith("0 ")]


@pytest.mark.parametrize(
    ("fault", "error", "text", "made"),
    [
        ("create-fails", CreateRefused, "was not made", False),
        ("create-hangs", CreateUnclear, "did not end", False),
        ("create-hangs-after-making", CreateUnclear, "did not end", True),
        ("create-reports-failure-but-makes", CreateUnclear, "is reported as failed", True),
        ("create-reports-success-but-makes-nothing", CreateRefused, "made no", False),
    ],
)
def test_every_way_in_which_a_create_fails(
    tmp_path: Path, fault: str, error: type[HardwareError], text: str, made: bool
) -> None:
    tool, card = switched_on(tmp_path)
    tool.set_fault(fault, times=1)
    with pytest.raises(error, match=text) as raised:
        card.create(CARD, P3, ())
    assert type(raised.value) is error
    assert "3g.20gb" in str(raised.value)
    listed = "--create-instance" not in tool.calls[-1]
    assert listed is (text != "did not end"), "after a hang the caller lists, who undoes it"
    assert bool(tool.instances(ONE)) is made
    assert card.create(CARD, P3, card.instances(CARD)).profile == "3g.20gb"


def test_what_was_made_by_another_profile_is_destroyed(tmp_path: Path) -> None:
    _, card = switched_on(tmp_path)
    there = card.create(CARD, P1, ())
    with pytest.raises(CreateMadeOther, match=r"3g\.20gb.*where DRS instance 1g\.6gb"):
        card.create(CARD, replace(P1, id=1), (there,))
    assert card.instances(CARD) == (there,)


@pytest.mark.parametrize("fault", ["create-hangs-after-making", "create-reports-failure-but-makes"])
def test_what_efsmi_does_not_say_that_it_made_is_left(tmp_path: Path, fault: str) -> None:
    """Nothing tells it from what somebody else made at that moment."""
    tool, card = switched_on(tmp_path)
    tool.set_fault(fault, times=1)
    with pytest.raises(HardwareError, match="DRS instance 1g"):
        card.create(CARD, replace(P1, id=1), ())
    assert [one.profile for one in tool.instances(ONE)] == ["3g.20gb"]


def test_no_room_is_told_in_efsmis_words(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path, placement="aligned")
    tool.set_card(ONE, instances=(There(1, "1g.6gb", "a", (0,)), There(2, "1g.6gb", "b", (3,))))
    with pytest.raises(CreateRefused, match="no room"):
        card.create(CARD, P3, card.instances(CARD))


def test_an_instance_under_another_id_is_found_by_its_uuid(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path)
    made = card.create(CARD, P1, ())
    other = There(made.id, "1g.6gb", "somebody-elses", (1,))
    moved = tool.instances(ONE)[0]._replace(id=7)
    tool.set_card(ONE, instances=(other, moved))
    card.destroy(CARD, made)
    assert tool.instances(ONE) == (other,)


@pytest.mark.parametrize(
    ("fault", "text", "calls"),
    [("destroy-fails", "still there", 3), ("destroy-hangs", "did not end", 2)],
)
def test_a_destroy_that_fails(tmp_path: Path, fault: str, text: str, calls: int) -> None:
    """After one that hangs the card is not listed: that may hang as long again."""
    tool, card = switched_on(tmp_path)
    made = card.create(CARD, P1, ())
    tool.set_fault(fault, times=1)
    tool.calls.clear()
    with pytest.raises(DestroyFailed, match=text):
        card.destroy(CARD, made)
    assert len(tool.calls) == calls
    card.destroy(CARD, made)
    assert tool.instances(ONE) == ()


def test_a_card_without_drs(tmp_path: Path) -> None:
    tool = MemoryEfsmi.of(ONE, card={"model": "T20"})
    with pytest.raises(SwitchRefused, match="does not support DRS"):
        drs(tool, tmp_path).switch_on(CARD)


def test_drs_off_is_a_success_where_the_card_is_not_in_drs_mode(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path)
    tool.set_fault("drs-off-refused")
    with pytest.raises(SwitchRefused, match="out of DRS mode"):
        card.switch_off(CARD)
    tool.set_card(ONE, virtualization="Disable")
    card.switch_off(CARD)
    assert not card.is_on(CARD)


def test_garbage_is_no_profile_table_and_no_empty_card(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path)
    card.create(CARD, P1, ())
    tool.set_fault("efsmi-garbage")
    with pytest.raises(HardwareError, match="offers no DRS profiles"):
        card.profiles(CARD)
    with pytest.raises(HardwareError, match="lists nothing"):
        card.instances(CARD)


def test_garbage_of_an_older_tool_is_no_empty_card(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path, efsmi={"instanceRows": False})
    made = card.create(CARD, P1, ())
    tool.set_fault("efsmi-garbage", command="list-instance")
    assert card.instances(CARD) == (made,)
    tool.set_fault("efsmi-garbage", command="summary")
    with pytest.raises(HardwareError, match="GCU Virt"):
        card.instances(CARD)


def test_a_card_that_gets_another_index_is_followed(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path)
    made = card.create(CARD, P1, ())
    tool.set_card(ONE, efsmi_index=0)
    tool.set_card(TWO, efsmi_index=1)
    assert card.instances(CARD) == (made,)
    card.destroy(CARD, made)
    assert tool.instances(ONE) == ()


def test_a_lost_card_is_gone_and_comes_back(tmp_path: Path) -> None:
    tool, card = switched_on(tmp_path)
    made = card.create(CARD, P1, ())
    tool.set_card(ONE, lost=True)
    with pytest.raises(CardGone, match=ONE):
        card.instances(CARD)
    tool.set_card(ONE, lost=False, efsmi_index=5)
    assert card.instances(CARD) == (made,)


def test_a_hang_that_outlives_its_caller_keeps_the_card(tmp_path: Path) -> None:
    """The real executable: an agent that is killed leaves its call running; who comes after waits
    for the call's end rather than listing what is not so for long."""
    machine = SimulatedMachine.create(
        {"cards": [{"bdf": ONE, "model": "S60"}]}, tmp_path / "m", plain_device_files=True
    )
    tool = Efsmi(machine.efsmi_path, timeout=20, effects=Effects())
    card = Drs(tool, tmp_path / "locks", breaker=HungCardBreaker(0))
    card.switch_on(CARD)
    machine.set_machine(delaysMs={"create-instance": 300})
    with alone(tmp_path / "locks", CARD, patience=0) as lock:
        # As `Efsmi.run` starts it, without waiting for its end.
        left = subprocess.Popen(
            [str(machine.efsmi_path), "-i", "0", "--drs", "--create-instance", "0"],
            pass_fds=(lock,),
            stdout=subprocess.DEVNULL,
        )
    assert [one.profile for one in card.instances(CARD)] == ["1g.6gb"]
    assert left.wait(timeout=60) == 0


def test_a_card_that_hangs_keeps_no_other_from_being_found(tmp_path: Path) -> None:
    """What asks all cards hangs; the index that the inventory saw is asked first."""
    tool = MemoryEfsmi.of(ONE, TWO, card={"instances": [{"profile": "1g.6gb"}]})
    tool.set_fault("card-hangs", card=TWO)
    asked_for_all = drs(tool, tmp_path)
    with pytest.raises(EfsmiHung):
        asked_for_all.instances(CARD)
    assert len(drs(tool, tmp_path, index=1).instances(CARD)) == 1


def test_a_card_without_instances_is_known_beside_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is of all cards; both lists of the one card tell of none."""
    tool = MemoryEfsmi.of(ONE, TWO)
    tool.set_fault("card-hangs", card=TWO)
    assert drs(tool, tmp_path, index=1).instances(CARD) == ()
    ask = tool.run

    def without_older_list(*arguments: str, inherit: Sequence[int] = ()) -> str:
        if "--list-instance" in arguments:
            raise EfsmiFailed("unknown option")
        return ask(*arguments, inherit=inherit)

    monkeypatch.setattr(tool, "run", without_older_list)
    with pytest.raises(EfsmiHung):
        drs(tool, tmp_path, index=1).instances(CARD)


def test_a_probable_index_that_is_another_cards_is_noticed(tmp_path: Path) -> None:
    tool = MemoryEfsmi.of(ONE, TWO)
    tool.set_card(ONE, instances=(There(1, "1g.6gb", "u", (0,)),), virtualization="DRS")
    assert [each.uuid for each in drs(tool, tmp_path, index=0).instances(CARD)] == ["u"]
