"""Which values of a device an expression is said to read, and whether it reads no others."""

from __future__ import annotations

import pytest

from dra_driver.selector.allowance import Allowance
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.interpreter.budget import CostBudget
from dra_driver.selector.parser.build import build
from dra_driver.selector.parser.source import parse
from dra_driver.selector.reads import Path, reads
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.table import DEVICE, DRIVER, THEMES, spelled
from tests.unit.selector.whole import answer, reads_all

ATTRIBUTES = ("attributes", DRIVER)


@pytest.mark.parametrize(
    ("expression", "paths"),
    {
        "1 == 1": set(),
        'device.driver == "x"': {("driver",)},
        "GCU.model == GCU['type']": {(*ATTRIBUTES, "model"), (*ATTRIBUTES, "type")},
        "has(GCU.model)": {(*ATTRIBUTES, "model")},
        'GCU.model.x == 1 || "x" in GCU': {(*ATTRIBUTES, "model"), ATTRIBUTES},
        'device.attributes["a" + "b"].c': {("attributes",)},
        "cel.bind(gcu, GCU, gcu.model == gcu.type)": {
            (*ATTRIBUTES, "model"),
            (*ATTRIBUTES, "type"),
        },
        "cel.bind(gcu, GCU, size(gcu) == 1)": {ATTRIBUTES},
        "cel.bind(x, GCU.model == 'S60', true)": {(*ATTRIBUTES, "model")},
        "[1].exists(device, device == 1)": set(),
        "GCU.all(name, GCU[name] != 1)": {ATTRIBUTES},
        "{device.driver: [CAPACITY.memory]}.size() == 1 ? !GCU.x : -GCU.y == 1": {
            ("driver",),
            ("capacity", DRIVER, "memory"),
            (*ATTRIBUTES, "x"),
            (*ATTRIBUTES, "y"),
        },
        "[device].size() == 1": {()},
        "GCU.?model.orValue('') == GCU[?'type'].orValue('')": {
            (*ATTRIBUTES, "model"),
            (*ATTRIBUTES, "type"),
        },
        "cel.bind(gcu, device.attributes[?'gcu.enflame.com'], gcu.model.hasValue())": {
            (*ATTRIBUTES, "model")
        },
        "GCU.?model.optMap(m, m + GCU.type).hasValue()": {
            (*ATTRIBUTES, "model"),
            (*ATTRIBUTES, "type"),
        },
        "GCU.?model.optMap(m, true).hasValue()": {(*ATTRIBUTES, "model")},
        "GCU.?model.optFlatMap(m, GCU.?type).hasValue()": {
            (*ATTRIBUTES, "model"),
            (*ATTRIBUTES, "type"),
        },
        "cel.bind(a, device.attributes, a[?'gcu.enflame.com'].optMap(g, g.x).hasValue())": {
            ATTRIBUTES
        },
        "[?GCU.?x].size() == 1 && {?'a': GCU.?y}.size() == 1": {
            (*ATTRIBUTES, "x"),
            (*ATTRIBUTES, "y"),
        },
    }.items(),
)
def test_paths(expression: str, paths: set[Path]) -> None:
    budget = CostBudget(Allowance())
    assert reads(build(parse(spelled(expression), budget), budget)) == paths


@pytest.mark.parametrize("theme", THEMES)
def test_an_answer_does_not_depend_on_what_is_not_read(theme: str) -> None:
    selectors = Selectors()
    devices = [
        SelectorInput.of(DRIVER, {**DEVICE, "attributes": attributes})
        for attributes in (DEVICE["attributes"], {"type": {"string": "whole"}}, {})
    ]
    for expression in (spelled(each) for part in _parts(theme) for each in part):
        whole = reads_all(expression)
        for device in devices:
            assert answer(selectors, expression, device) == answer(selectors, whole, device)


def _parts(theme: str) -> tuple[tuple[str, ...], ...]:
    found = THEMES[theme]
    return found.matches, found.differs, found.fails
