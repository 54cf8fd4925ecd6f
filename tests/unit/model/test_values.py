"""Values of the model are values: frozen, without a dict, equal by content."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import pytest

from dra_driver import model
from dra_driver.model.card import Virtualization
from dra_driver.model.claims.claim_device import ClaimDevice
from tests.unit.model.cards import CARD


def values() -> list[type]:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(model.__path__, f"{model.__name__}.")
    ]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if dataclasses.is_dataclass(value)
        and isinstance(value, type)
        and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize("value", values(), ids=lambda value: value.__name__)
def test_a_value_is_frozen_and_slotted(value: type) -> None:
    assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]  # not in typeshed
    assert "__slots__" in vars(value)


def test_a_card_can_be_compared_whole() -> None:
    assert dataclasses.replace(CARD) == CARD
    assert dataclasses.replace(CARD, minor=9) != CARD


def test_virtualization_is_as_efsmi_prints_it() -> None:
    assert [str(mode) for mode in Virtualization] == ["Disable", "DRS", "SRIOV"]


def test_a_prepared_device_has_no_share_unless_told() -> None:
    device = ClaimDevice("gcu", "pool", "device", ("gcu.enflame.com/claim=a",))
    assert device.share_id is None
