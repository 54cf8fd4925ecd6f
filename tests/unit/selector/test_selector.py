"""What expressions mean for a device: tables of expressions and their answers."""

from __future__ import annotations

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors

GCU = 'device.attributes["gcu.enflame.com"]'
K8S = 'device.attributes["resource.kubernetes.io"]'
CAPACITY = 'device.capacity["gcu.enflame.com"]'

DEVICE = SelectorInput.of(
    "gcu.enflame.com",
    {
        "name": "whole-0000-0d-00-0",
        "attributes": {
            "type": {"string": "whole"},
            "model": {"string": "S60"},
            "memoryMiB": {"int": 42976},
            "healthy": {"bool": True},
            "gcu.enflame.com/card": {"string": "0000:0d:00.0"},
            "resource.kubernetes.io/numaNode": {"int": 1},
            "lanes": {"ints": [4, 8]},
            "firmware": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "42976Mi"}},
    },
)


@pytest.fixture(scope="module")
def selectors() -> Selectors:
    return Selectors()


TRUE = [
    'device.driver == "gcu.enflame.com"',
    f'{GCU}.type == "whole"',
    f'{GCU}["type"] == "whole" && {GCU}.model == "S60"',
    f'device.driver == "gcu.enflame.com" && {GCU}.type in ["whole", "shared"]',
    f"{GCU}.memoryMiB >= 40000 && {GCU}.memoryMiB < 50000",
    f"{GCU}.memoryMiB > 42975.5",
    f"{GCU}.memoryMiB == 42976.0",
    f"{GCU}.memoryMiB == 42976u",
    f"{GCU}.healthy",
    f"!!{GCU}.healthy",
    f'{GCU}.card == "0000:0d:00.0"',
    f"{K8S}.numaNode == 1",
    f"-{K8S}.numaNode == -1",
    f"{K8S}.numaNode-1 == 0",
    f"0x1F == 31 && {K8S}.numaNode == 1",
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1 && 7.0 / 2.0 == 3.5",
    "1.0 / 0.0 > 1000.0",
    '"a" + "b" == "ab" && [1] + [2] == [1, 2]',
    '"a" < "b" && false < true',
    "1 != true",
    '1 != "1"',
    "!(true == 1)",
    f'{GCU}.model.startsWith("S") && {GCU}.model.endsWith("0") && {GCU}.model.contains("6")',
    f'{GCU}.model.matches("^S[0-9]+$")',
    f'{GCU}.model.lowerAscii() == "s60" && "é".upperAscii() == "é"',
    'size("é€") == 2 && "ab".size() == 2 && size([1, 2, 3]) == 3',
    f"has({GCU}.model) && !has({GCU}.nothing)",
    f'"model" in {GCU} && !("nothing" in {GCU})',
    # A guard keeps the error of an unknown name away, on either side.
    f'!("nothing" in {GCU} && {GCU}.nothing == 1)',
    f'"nothing" in {GCU} ? {GCU}.nothing == 1 : true',
    f'{GCU}.nothing == 1 || {GCU}.model == "S60"',
    f'{GCU}.model == "S60" || {GCU}.nothing == 1',
    f'!({GCU}.nothing == 1 && {GCU}.model == "T20")',
    # An unknown domain is an empty map.
    'size(device.attributes["other.example.com"]) == 0',
    '!has(device.attributes["other.example.com"].model)',
    '!("other.example.com" in device.attributes) && "gcu.enflame.com" in device.attributes',
    "[1, 2, 3].all(x, x > 0) && [1, 2, 3].exists(x, x == 2) && [1, 2, 3].exists_one(x, x > 2)",
    "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].filter(x, x > 1) == [2, 3]",
    "[1, 2].all(x, [3, 4].exists(y, y == x + 2))",
    "[0, 2].exists(x, 4 / x == 2)",
    "![0, 2].all(x, 4 / x == 3)",
    f"{GCU}.exists(name, name.startsWith('mem'))",
    f"{GCU}.lanes.includes(8) && !{GCU}.lanes.includes(16) && {GCU}.memoryMiB.includes(42976)",
    f'{CAPACITY}.memory.isGreaterThan(quantity("40Gi"))',
    f'{CAPACITY}.memory.compareTo(quantity("42976Mi")) == 0',
    f'{CAPACITY}.memory == quantity("42976Mi")',
    f'{CAPACITY}.memory.isLessThan(quantity("42977Mi")) && {CAPACITY}.memory.sign() == 1',
    'quantity("1Ki").add(1) == quantity("1025") && quantity("1").sub(quantity("2")).sign() == -1',
    'quantity("1500m").isInteger() == false && quantity("2k").asInteger() == 2000',
    'quantity("1500m").asApproximateFloat() == 1.5',
    'isQuantity("1.5Gi") && !isQuantity("five")',
    '"memory" in device.capacity["gcu.enflame.com"]',
    "!device.allowMultipleAllocations",
    "dyn(1) == 1",
    r'"\u00e9\"x" == "é\"x" && r"\d" == "\\d"',
    "null == null",
]

FALSE = [
    'device.driver == "gpu.example.com"',
    f'device.driver == "gpu.example.com" && {GCU}.nothing == 1',
    f"{GCU}.memoryMiB > 50000",
    f'{CAPACITY}.memory.isGreaterThan(quantity("1Ti"))',
    "[].exists(x, x == 1)",
]

REFUSED = {
    f"{GCU}.nothing == 1": "no such key: nothing",
    'device.attributes["other.example.com"].model == "x"': "no such key: model",
    f"{GCU}.nothing == 1 || false": "no such key",
    f"true && {GCU}.nothing == 1": "no such key",
    f"{GCU}.model": "not a bool",
    f"{GCU}.memoryMiB": "not a bool",
    f"{GCU}.model ? true : false": "no such overload",
    f"{GCU}.model < 1": "no such overload",
    f"{GCU}.memoryMiB + 1.0 > 1.0": "no such overload",
    "1 / 0 == 1": "divide by zero",
    "9223372036854775807 + 1 > 0": "overflow",
    f'{GCU}.firmware == "1.2.3"': "kind version is not supported",
    "device.nothing == 1": "no such key",
    "devices.driver == 'x'": "undeclared reference to 'devices'",
    "true || nothing": "undeclared reference to 'nothing'",
    f'true || semver("1.2.3").major() == 1 && {GCU}.healthy': "function",
    'cel.bind(x, device.driver, x == "a")': "bind",
    f'{GCU}.model.split("6") == ["S", "0"]': "split() is not supported",
    '{"a": 1}["a"] == 1': "a map literal",
    'b"a" == b"a"': "bytes literal",
    "has(device)": "field selection",
    "[1].all(1, true)": "takes a variable",
    "size(1, 2) == 1": "takes 1 arguments",
    "device.driver ==": "syntax error",
    f'{GCU}.model.matches("(")': "not a regular expression",
    "[1][1] == 1": "out of bounds",
    'quantity("five").sign() == 1': "is not a quantity",
    'quantity("1500m").asInteger() == 1': "cannot convert",
}


@pytest.mark.parametrize("expression", TRUE)
def test_true(selectors: Selectors, expression: str) -> None:
    assert selectors.matches(expression, DEVICE) is True


@pytest.mark.parametrize("expression", FALSE)
def test_false(selectors: Selectors, expression: str) -> None:
    assert selectors.matches(expression, DEVICE) is False


@pytest.mark.parametrize(("expression", "reason"), REFUSED.items(), ids=REFUSED)
def test_refused_by_name(selectors: Selectors, expression: str, reason: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        selectors.matches(expression, DEVICE)
    assert reason in refused.value.what
    assert repr(expression) in refused.value.what


def test_endless_work_is_refused(selectors: Selectors) -> None:
    hundred = f"[{', '.join(['1'] * 100)}]"
    nested = f"{hundred}.all(a, {hundred}.all(b, {hundred}.all(c, a == b)))"
    with pytest.raises(InvalidValue, match="too many steps"):
        selectors.matches(nested, DEVICE)


def test_deep_nesting_is_refused(selectors: Selectors) -> None:
    with pytest.raises(InvalidValue, match="nested too deeply"):
        selectors.matches("(" * 2000 + "true" + ")" * 2000, DEVICE)


def test_allow_multiple_allocations() -> None:
    device = SelectorInput.of("gcu.enflame.com", {"allowMultipleAllocations": True})
    assert Selectors().matches("device.allowMultipleAllocations", device)


def test_equal_devices_are_equal_inputs() -> None:
    one = {"name": "a", "attributes": {"x": {"int": 1}, "y": {"int": 2}}}
    other = {"name": "b", "attributes": {"y": {"int": 2}, "x": {"int": 1}}, "capacity": {}}
    assert SelectorInput.of("d", one) == SelectorInput.of("d", other)
