"""The join of sysfs and efsmi, on simulated machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.hardware.efsmi import Efsmi
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.effects import Effects
from dra_driver.model.errors import HardwareError
from dra_driver.simulator.machine import SimulatedMachine


def machine(simulated: SimulatedMachine, root: Path, timeout: float = 20) -> Machine:
    efsmi = Efsmi(Path(simulated.efsmi_path), timeout=timeout, effects=Effects())
    return Machine(Sysfs(root), efsmi)


@pytest.mark.parametrize(
    ("name", "cards"), [("s60-ecc-8", 8), ("s60-4", 4)], ids=["with ecc", "without ecc"]
)
def test_every_card_is_joined(tmp_path: Path, name: str, cards: int) -> None:
    simulated = SimulatedMachine.create(name, tmp_path / "m", plain_device_files=True)
    found = machine(simulated, tmp_path / "m").inventory()
    assert not found.unusable
    assert len(found.cards) == cards
    for card in found.cards:
        truth = simulated.card(str(card.address))
        assert (card.minor, card.uuid) == (truth.minor, truth.uuid)
        assert card.model == "S60"
        assert card.pcie_switch is not None
        assert card.nodes[0].path == f"/dev/gcu{card.minor}"
        assert card.problems == ()


def test_two_cards_share_a_switch(tmp_path: Path) -> None:
    simulated = SimulatedMachine.create("s60-ecc-8", tmp_path / "m", plain_device_files=True)
    found = machine(simulated, tmp_path / "m").inventory().cards
    switches = [card.pcie_switch for card in found]
    assert sorted(switches.count(switch) for switch in set(switches)) == [2, 2, 2, 2]


def test_problems_of_a_card(tmp_path: Path) -> None:
    simulated = SimulatedMachine.create("s60-ecc-8", tmp_path / "m", plain_device_files=True)
    first = machine(simulated, tmp_path / "m").inventory().cards[0]
    simulated.set_card(str(first.address), health=False)
    again = machine(simulated, tmp_path / "m").inventory().cards[0]
    assert [problem.value for problem in again.problems] == ["health"]


def test_a_lost_card_is_not_found(tmp_path: Path) -> None:
    simulated = SimulatedMachine.create("s60-4", tmp_path / "m", plain_device_files=True)
    reader = machine(simulated, tmp_path / "m")
    first = reader.inventory().cards[0]
    simulated.lose_card(str(first.address))
    assert first.address not in {card.address for card in reader.inventory().cards}
    with pytest.raises(HardwareError, match="gone from the PCI bus"):
        reader.card(first)


def test_a_missing_driver_is_an_error_and_not_an_empty_node(tmp_path: Path) -> None:
    simulated = SimulatedMachine.create("s60-4", tmp_path / "m", plain_device_files=True)
    simulated.set_machine(driverLoaded=False)
    with pytest.raises(HardwareError, match="not loaded"):
        machine(simulated, tmp_path / "m").inventory()


def test_efsmi_that_cannot_be_run_names_the_setting(tmp_path: Path) -> None:
    efsmi = Efsmi(tmp_path / "nowhere", timeout=1, effects=Effects())
    with pytest.raises(HardwareError, match="efsmi"):
        efsmi.query()
