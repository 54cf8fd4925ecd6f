"""Which faults a source text can have, and that nothing else of it changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.edits import Kind, edits, is_fault

CHECKOUT = Path(__file__).parents[3]


def mutated(text: str, kind: Kind) -> list[str]:
    """The text with each fault of that kind."""
    return [each.applied(text) for each in edits(text) if each.kind is kind]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a < b", ["a <= b"]),
        ("a <= b", ["a < b"]),
        ("a > b", ["a >= b"]),
        ("a >= b", ["a > b"]),
        ("a == b", ["a != b"]),
        ("a != b", ["a == b"]),
        ("a is b", ["a is not b"]),
        ("a is  not b", ["a is b"]),
        ("a in b", ["a not in b"]),
        ("a not in b", ["a in b"]),
        ("a < b < c", ["a <= b < c", "a < b <= c"]),
        ("(a) < (b)", ["(a) <= (b)"]),
        ("(a  # a < b\n < b)", ["(a  # a < b\n <= b)"]),
        ('"é" == é < ü', ['"é" != é < ü', '"é" == é <= ü']),
    ],
)
def test_comparisons(text: str, found: list[str]) -> None:
    assert mutated(text, Kind.COMPARISON) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a + b", ["a - b"]),
        ("a - b", ["a + b"]),
        ("a * b", ["a // b"]),
        ("a ** b", ["a * b"]),
        ("a / b", ["a * b"]),
        ("a // b", ["a * b"]),
        ("a % b", ["a * b"]),
        ("a << b", ["a >> b"]),
        ("a >> b", ["a << b"]),
        ("a & b", ["a | b"]),
        ("a ^ b", ["a & b"]),
        ("os.O_RDWR | os.O_CREAT", ["os.O_RDWR & os.O_CREAT"]),
        ("a += 1", ["a -= 1"]),
        ("-a", ["a"]),
        ("(a + b) * c", ["(a + b) // c", "(a - b) * c"]),
        ("Either = One | Other", []),
        ("Either = One | None", []),
        ("a @ b", []),
    ],
)
def test_operators(text: str, found: list[str]) -> None:
    assert mutated(text, Kind.OPERATOR) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a and b or c", ["a and b and c", "a or b or c"]),
        ("a and b and c", ["a or b and c", "a and b or c"]),
        ("not a", ["a"]),
        ("not (a or b)", ["(a or b)", "not (a and b)"]),
        ("f(x=True)", ["f(x=False)"]),
        ("return False", ["return True"]),
        ("None", []),
    ],
)
def test_booleans(text: str, found: list[str]) -> None:
    before, after = "def f():\n    x = (", ")\n"
    if text.startswith("return"):
        before, after = "def f():\n    ", "\n"
    found = [f"{before}{each}{after}" for each in found]
    assert mutated(f"{before}{text}{after}", Kind.BOOLEAN) == found


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("x = 0", Kind.NUMBER, ["x = 1"]),
        ("x = -0x10", Kind.NUMBER, ["x = -17"]),
        ("x = 2.5", Kind.NUMBER, ["x = 5.0"]),
        ("x = 0.0", Kind.NUMBER, ["x = 1.0"]),
        ('x = "a"', Kind.TEXT, ["x = ''"]),
        ('x = ("a"\n     "b")', Kind.TEXT, ["x = ('')"]),
        ('x = ""', Kind.TEXT, ["x = 'mutant'"]),
        ('x = f"{a + 1}"', Kind.NUMBER, []),
        ('x: Literal["a"] = f"{a}b"', Kind.TEXT, []),
        ("def f(x: Literal[1] = 2) -> Literal[3]: pass", Kind.NUMBER, None),
        ("@dataclass(frozen=True)\nclass X: pass", Kind.BOOLEAN, []),
        ('"""Says."""\nx = y\n"""More."""', Kind.TEXT, []),
        ('logger.info("a %s", b)', Kind.TEXT, []),
    ],
)
def test_constants(text: str, kind: Kind, found: list[str] | None) -> None:
    expected = [text.replace("2", "3")] if found is None else found
    assert mutated(text, kind) == expected


FUNCTION = '''\
LIMIT = 1


def f(x):
    """Says."""
    y: int
    import os
    if x:
        return 1
    elif y:
        del x
    if y:
        g(
            1,
        )
    for each in x:
        continue
    assert y
    logger.info("x %s", 1)
    def g():
        ...
    raise Odd
'''


def test_statements() -> None:
    removed = [
        FUNCTION[each.start : each.end] for each in edits(FUNCTION) if each.kind is Kind.STATEMENT
    ]
    call = "g(\n            1,\n        )"
    assert removed == ["return 1", "del x", f"if y:\n        {call}", call, "continue", "raise Odd"]
    assert all("pass" in each for each in mutated(FUNCTION, Kind.STATEMENT))


@pytest.mark.parametrize(
    ("text", "found"),
    [("x = f(1)", True), ("match x:\n    case {'a': 1, 'b': 2}: pass", True), ("x = [\n]", False)],
)
def test_an_edit_is_a_fault_if_it_compiles_to_something_else(text: str, found: bool) -> None:
    faults = [is_fault(text, each) for each in edits(text)]
    assert any(faults) is found


def test_what_does_not_compile_is_no_fault() -> None:
    [twice] = [
        each
        for each in edits("match x:\n    case {'': 1, 'b': 2}: pass")
        if (each.kind, each.new) == (Kind.TEXT, "''")
    ]
    assert not is_fault("match x:\n    case {'': 1, 'b': 2}: pass", twice)


@pytest.mark.parametrize("name", ["controller/allocator/order.py", "dra_driver/model/pci.py"])
def test_all_faults_of_real_files_can_be_read_again(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    found = list(edits(text))
    assert len(found) > 10
    assert len(set(found)) == len(found)
    for each in found:
        ast.parse(each.applied(text))
