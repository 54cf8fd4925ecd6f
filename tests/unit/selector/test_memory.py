"""How often an expression is evaluated."""

from __future__ import annotations

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.table import DRIVER, spelled


def device(card: int, kind: int) -> SelectorInput:
    return SelectorInput.of(
        DRIVER,
        {
            "attributes": {
                "uuid": {"string": f"T6000-{card}"},
                "model": {"string": f"S{kind}"},
                "memoryMiB": {"int": 1024 * kind},
            },
            "capacity": {"memory": {"value": f"{kind}Gi"}},
        },
    )


@pytest.fixture(scope="module")
def devices() -> list[SelectorInput]:
    return [device(card, card % 20) for card in range(6_000)]


@pytest.mark.parametrize(
    "expression",
    [
        'GCU.model == "S3"',
        'cel.bind(gcu, GCU, gcu.model == "S3" && gcu.memoryMiB > 0)',
        'has(GCU.model) && CAPACITY.memory == quantity("3Gi")',
        '["S3"].exists(model, model == GCU["model"])',
    ],
)
def test_6_000_devices_of_20_kinds_cost_20_evaluations(
    devices: list[SelectorInput], expression: str
) -> None:
    selectors = Selectors()
    matching = sum(selectors.matches(spelled(expression), each) for each in devices)
    assert matching == 300
    assert selectors.evaluations == 20


@pytest.mark.parametrize(
    ("expression", "evaluations"),
    {
        f'device.driver == "{DRIVER}"': 1,
        "1 == 1": 1,
        'GCU.model == "S1"': 2,
        'GCU.uuid != ""': 4,
        "GCU.all(name, name != 'x')": 4,
        'device.attributes.exists(domain, domain == "x")': 4,
        "[1].exists(device, device == 1)": 1,
        'cel.bind(all, device.attributes, all["gcu.enflame.com"].model == "S1")': 2,
        'GCU["mo" + "del"] == "S1"': 4,
    }.items(),
)
def test_only_what_is_read_counts(expression: str, evaluations: int) -> None:
    selectors = Selectors()
    for card in range(4):
        selectors.matches(spelled(expression), device(card, card % 2))
    assert selectors.evaluations == evaluations


def test_what_a_device_lacks_counts() -> None:
    selectors, expression = Selectors(), spelled("has(GCU.model)")
    assert selectors.matches(expression, device(1, 1))
    assert not selectors.matches(expression, SelectorInput.of(DRIVER, {}))
    assert selectors.evaluations == 2


def test_errors_are_remembered_too() -> None:
    selectors, expression = Selectors(), spelled("GCU.nothing == 1")
    for card in range(3):
        with pytest.raises(InvalidValue, match="no such key: nothing"):
            selectors.matches(expression, device(card, 1))
    assert selectors.evaluations == 1
