"""An expression's text, through cel-python's parser.

Its lexer takes a backslash for an escape in raw strings too, and where a string's end is missing
its work doubles with each octal escape. So quoted literals are read here and masked by underscores
of the same length, which keeps the positions in its messages right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import lark
from celpy.celparser import CELParseError, CELParser

from dra_driver.selector.errors import RefusedError
from dra_driver.selector.parser.literals import quoted
from dra_driver.selector.values import Value

LONGEST: Final = 10 * 1024  # resource.k8s.io/v1, CELSelectorExpressionMaxLength

_QUOTED: Final = (
    r"(?<![a-zA-Z0-9_])[bB]?[rR](?:'''.*?'''|\"\"\".*?\"\"\"|'[^'\r\n]*'|\"[^\"\r\n]*\")"
    r"|(?:(?<![a-zA-Z0-9_])[bB])?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\""
    r"|'(?:[^\\'\r\n]|\\[^\r\n])*'|\"(?:[^\\\"\r\n]|\\[^\r\n])*\")"
)
_TOKEN: Final = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<comment>//[^\n]*)|(?P<optional>\.\?|[\[{{]\s*\?|,\s*\?)"
    r"|(?P<trailing>,(?=\s*[\]}]))|(?P<stray>[`'\"])",
    re.DOTALL,
)

Tree = lark.Tree[lark.Token]


@dataclass(frozen=True, slots=True)
class Parsed:
    """cel-python's tree, and the values of the quoted literals by their offset in the text."""

    tree: Tree
    quoted: Mapping[int, Value]


def parse(text: str) -> Parsed:
    """Raises RefusedError for a text that is too long or not CEL."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        raise RefusedError("it has half of a surrogate pair") from error
    if length > LONGEST:
        raise RefusedError(f"it is longer than {LONGEST} bytes")
    literals: dict[int, Value] = {}

    def mask(token: re.Match[str]) -> str:
        if token["quoted"]:
            literals[token.start()] = quoted(token[0])
            return f'"{"_" * (len(token[0]) - 2)}"'
        if token["optional"]:
            raise RefusedError("optional values are not supported")
        if token["stray"]:
            raise _syntax_error(text, token.start())
        return re.sub(r"[^\n]", " ", token[0])

    masked = _TOKEN.sub(mask, text)
    try:
        return Parsed(_parser().parse(masked), literals)
    except CELParseError as error:
        raise RefusedError(f"syntax error at line {error.line}, column {error.column}") from error


def _syntax_error(text: str, offset: int) -> RefusedError:
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    return RefusedError(f"syntax error at line {line}, column {column}")


@cache
def _parser() -> CELParser:
    # Reading the grammar takes a good part of a second: once, and only where it is needed.
    return CELParser()
