"""The page about the simulated machine says what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dra_driver.simulator.commands.command import COMMANDS
from dra_driver.simulator.description.catalog import catalog
from dra_driver.simulator.description.load import machine_spec, parse_yaml, shipped_machines
from dra_driver.simulator.description.resolve import first_state
from dra_driver.simulator.description.spec import CardSpec, EfsmiSpec, FaultSpec, MachineSpec, Spec
from dra_driver.simulator.faults import MEANINGS

PAGE = (Path(__file__).parents[3] / "docs/user/simulated-machine.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("spec", [MachineSpec, CardSpec, EfsmiSpec, FaultSpec])
def test_every_key_is_on_the_page(spec: type[Spec]) -> None:
    keys = [field.alias or name for name, field in spec.model_fields.items()]

    assert [key for key in keys if f"`{key}`" not in PAGE] == []


@pytest.mark.parametrize(
    "names",
    [MEANINGS, COMMANDS, shipped_machines(), catalog().profile_tables, catalog().models],
    ids=["faults", "commands", "machines", "tables", "models"],
)
def test_every_name_is_on_the_page(names: tuple[str, ...]) -> None:
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_example_is_a_machine() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    machine = first_state(machine_spec(parse_yaml(example, of="the example")))

    assert [card.efsmi_index for card in machine.cards] == [1, 0]
    assert [one.profile for one in machine.cards[1].instances] == ["1g.7gb"]
