"""An expression's text, through cel-python's parser.

Its lexer takes a backslash for an escape in raw strings too, and where a string's end is missing
its work doubles with each octal escape. It takes ``7.`` for a double, so that no method of an
integer literal can be called. Its tokens of true and false have no position. So these literals are
read here and masked by underscores. Its grammar has no optional selection: the question mark of
``.?``, ``[?`` and ``{?`` is masked by a space. A mask is as long as what it hides, so that
positions stay right.

Fields in backquotes are masked, too (github.com/google/cel-go v0.29.2, parser/gen/CEL.g4,
ESC_IDENTIFIER; parser/parser.go, NewParser, reads them by default: Kubernetes 1.37). Its lexer
takes ``indevice`` for ``in device`` behind a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import lark
from celpy.celparser import CELParser

from dra_driver.selector.errors import RefusedError
from dra_driver.selector.interpreter.budget import CostBudget
from dra_driver.selector.parser.literals import quoted
from dra_driver.selector.values import Value

LONGEST: Final = 10 * 1024  # resource.k8s.io/v1, CELSelectorExpressionMaxLength
_TOKEN_COST: Final = 60  # a token takes up to 40 microseconds

_QUOTED: Final = (
    r"(?<![a-zA-Z0-9_])[bB]?[rR](?:'''.*?'''|\"\"\".*?\"\"\"|'[^'\r\n]*'|\"[^\"\r\n]*\")"
    r"|(?:(?<![a-zA-Z0-9_])[bB])?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\""
    r"|'(?:[^\\'\r\n]|\\[^\r\n])*'|\"(?:[^\\\"\r\n]|\\[^\r\n])*\")"
)
_TOKEN: Final = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<comment>//[^\n]*)"
    r"|(?<!\w)(?:(?P<bool>true|false)(?!\w)|(?P<target>[0-9]+)(?=\.(?![0-9]))"
    r"|(?P<number>(?:[0-9]*\.)?[0-9]+(?:[eE][+-]?[0-9]+)?))"
    r"|`(?P<field>[a-zA-Z0-9_./\- ]+)`(?!\w)"
    r"|(?P<stray>[`'\"])",
    re.DOTALL,
)
_MARK: Final = re.compile(r"[.\[{,]\s*(?P<optional>\?)\s*|(?P<trailing>,)(?=\s*[\]}])")

_WORD: Final = re.compile(r"\w")

Tree = lark.Tree[lark.Token]


@dataclass(frozen=True, slots=True)
class Parsed:
    """cel-python's tree; by their offset in the text the values of the masked literals, of integers
    the digits; the offsets of what follows a question mark of an optional selection, element or
    entry; by their offset the fields in backquotes."""

    text: str
    tree: Tree
    literals: Mapping[int, Value]
    optionals: frozenset[int]
    fields: Mapping[int, str]


def load_grammar() -> None:
    """Read CEL's grammar, which takes a good part of a second. Else the first expression does."""
    _parser()


def parse(text: str, budget: CostBudget) -> Parsed:
    """Raises RefusedError for a text that is too long or not CEL, and where `budget` does not
    suffice."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        raise RefusedError("it has half of a surrogate pair") from error
    if length > LONGEST:
        raise RefusedError(f"it is longer than {LONGEST} bytes")
    literals: dict[int, Value] = {}
    optionals: set[int] = set()
    fields: dict[int, str] = {}
    masked = _without_marks(_without_literals(text, literals, fields), optionals)
    try:
        return Parsed(text, _tree(masked, budget), literals, frozenset(optionals), fields)
    except lark.UnexpectedInput as error:
        raise RefusedError(f"syntax error at line {error.line}, column {error.column}") from error


def _tree(masked: str, budget: CostBudget) -> Tree:
    """Token by token, so that the deadline of a decision is seen between two of them."""
    parsing, last = _parser().parse_interactive(masked), None
    for token in parsing.iter_parse():
        budget.spend(_TOKEN_COST)
        assert token.end_pos is not None
        if token.type == "IN" and _WORD.match(masked, token.end_pos):
            assert token.start_pos is not None
            raise syntax_error(masked, token.start_pos)
        last = token
    tree: Tree = parsing.feed_eof(last)  # type: ignore[no-untyped-call]
    return tree


def _without_literals(text: str, found: dict[int, Value], fields: dict[int, str]) -> str:
    """The text with masks for literals, which are `found`, and for the `fields` in backquotes, and
    without comments."""

    def mask(token: re.Match[str]) -> str:
        kind, length = token.lastgroup, len(token[0])
        match kind:
            case "quoted":
                found[token.start()] = quoted(token[0])
                return f'"{"_" * (length - 2)}"'
            case "bool":
                found[token.start()] = token[0] == "true"
                return "_" * length
            case "target":
                found[token.start()] = token[0]
                return "_" * length
            case "field":
                fields[token.start()] = token["field"]
                return "_" * length
            case "number":
                return token[0]
            case "comment":
                return " " * length
        raise syntax_error(text, token.start())

    return _TOKEN.sub(mask, text)


def _without_marks(text: str, optionals: set[int]) -> str:
    """The text without commas at the end of lists, and without the question marks before the
    offsets `optionals`."""

    def clear(mark: re.Match[str]) -> str:
        if mark["trailing"]:
            return " "
        optionals.add(mark.end())
        return mark[0].replace("?", " ")

    return _MARK.sub(clear, text)


def syntax_error(text: str, offset: int) -> RefusedError:
    """What to raise for what stands at the offset of the text."""
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    return RefusedError(f"syntax error at line {line}, column {column}")


@cache
def _parser() -> lark.Lark:
    # Reading the grammar takes a good part of a second: once, and only where it is needed.
    CELParser()
    parser = CELParser.CEL_PARSER
    assert parser is not None  # it has just been made
    return parser
