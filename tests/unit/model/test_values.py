"""Values of the model are values: frozen, and without a dict."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import pytest

from dra_driver import model


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
