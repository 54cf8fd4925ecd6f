"""An expression's answer for what it reads of a device, and for the whole device."""

from __future__ import annotations

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors


def reads_all(expression: str) -> str:
    """The same with `device == device` before it, which reads everything."""
    return f"cel.bind(all, device == device, true) && ({expression}\n)"


def answer(selectors: Selectors, expression: str, device: SelectorInput) -> bool | None:
    """None for a refusal."""
    try:
        return selectors.matches(expression, device)
    except InvalidValue:
        return None
