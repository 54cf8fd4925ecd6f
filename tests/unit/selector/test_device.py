"""Devices as selectors see them."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.list_attributes import LIST_ATTRIBUTES, LIST_DEVICE
from tests.unit.selector.expressions.table import DRIVER, spelled

LIST_INPUT = SelectorInput.of(DRIVER, LIST_DEVICE)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        *((each, True) for each in (*LIST_ATTRIBUTES.matches, 'GCU.tags.join("-") == "x-y"')),
        *((each, False) for each in LIST_ATTRIBUTES.differs),
    ],
)
def test_list_attributes(expression: str, answer: bool) -> None:
    assert Selectors().matches(spelled(expression), LIST_INPUT) is answer


@pytest.mark.parametrize("expression", LIST_ATTRIBUTES.fails)
def test_list_attributes_that_cannot_be_evaluated(expression: str) -> None:
    with pytest.raises(InvalidValue):
        Selectors().matches(spelled(expression), LIST_INPUT)


def test_includes_of_a_longer_list_than_a_device_can_have() -> None:
    device = SelectorInput.of(DRIVER, {})
    longest = [*range(48)]
    assert Selectors().matches(f"{longest}.includes(47)", device)
    with pytest.raises(InvalidValue, match="a list of more than 48 values"):
        Selectors().matches(f"{[*range(49)]}.includes(48)", device)


def test_devices_for_several_claims() -> None:
    device = SelectorInput.of(DRIVER, {"allowMultipleAllocations": True})
    assert Selectors().matches("device.allowMultipleAllocations", device)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"attributes": {"x": {"colour": "red"}}}, "attributes/gcu.enflame.com/x of the kind"),
        ({"attributes": {"x": {"colour": {"red": [1]}}}}, "x of the kind 'colour'"),
        ({"attributes": {"x": {}}}, "x of the kind ''"),
        ({"attributes": {"x": {"version": "one"}}}, "'one' is not a semantic version"),
        ({"capacity": {"x": {"value": "much"}}}, "'much' is not a quantity"),
    ],
    ids=["kind", "kind with a structure", "no kind", "version", "quantity"],
)
def test_a_value_that_cannot_be_read_is_refused(entry: dict[str, Any], reason: str) -> None:
    field = next(iter(entry))
    with pytest.raises(InvalidValue, match=reason):
        Selectors().matches(f'has(device.{field}["{DRIVER}"].x)', SelectorInput.of(DRIVER, entry))


def test_equal_devices_are_equal_inputs() -> None:
    one = {"name": "a", "attributes": {"x": {"int": 1}, "y": {"ints": [2]}}}
    other = {"name": "b", "attributes": {"y": {"ints": [2]}, "x": {"int": 1}}, "capacity": {}}
    assert SelectorInput.of(DRIVER, one) == SelectorInput.of(DRIVER, other)
    assert SelectorInput.of(DRIVER, one) != SelectorInput.of("gpu.example.com", one)


def test_a_value_of_another_kind_is_another_device() -> None:
    selectors, expression = Selectors(), spelled("GCU.x == 1")
    as_int = SelectorInput.of(DRIVER, {"attributes": {"x": {"int": 1}}})
    as_bool = SelectorInput.of(DRIVER, {"attributes": {"x": {"bool": True}}})
    assert selectors.matches(expression, as_int)
    assert not selectors.matches(expression, as_bool)
