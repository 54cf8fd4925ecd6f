"""What a selector may not contain. Found before it is evaluated, so that no short circuit hides
an unknown function: the API server's type checker would have refused a misspelt one, and one it
accepted but we do not know must be refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import lark

from dra_driver.selector.errors import UnsupportedError
from dra_driver.selector.evaluator import field_selection, macro_arguments
from dra_driver.selector.functions import FUNCTIONS, METHODS
from dra_driver.selector.macros import MACROS

_REFUSED: Final = {
    "member_object": "message construction",
    "map_lit": "a map literal",
    "dot_ident": "a name with a leading dot",
    "dot_ident_arg": "a function with a leading dot",
}


def check(tree: lark.Tree[lark.Token], names: frozenset[str]) -> None:
    """Raise UnsupportedError unless everything in `tree` is known. `names` are the variables."""
    what = _REFUSED.get(str(tree.data))
    if what is not None:
        raise UnsupportedError(f"{what} is not supported")
    match str(tree.data):
        case "ident" if str(tree.children[0]) not in names:
            raise UnsupportedError(f"undeclared reference to {str(tree.children[0])!r}")
        case "literal":
            _literal(tree)
        case "ident_arg":
            _function(tree)
        case "member_dot_arg" if str(tree.children[1]) in MACROS:
            variable, body = macro_arguments(tree)
            _children(tree.children[0], names)
            check(body, names | {variable})
            return
        case "member_dot_arg":
            _called(tree, str(tree.children[1]), METHODS, receiver=1, position=2)
    for child in tree.children:
        _children(child, names)


def _children(child: lark.Tree[lark.Token] | lark.Token, names: frozenset[str]) -> None:
    if isinstance(child, lark.Tree):
        check(child, names)


def _literal(tree: lark.Tree[lark.Token]) -> None:
    token = tree.children[0]
    if isinstance(token, lark.Token) and token.type == "BYTES_LIT":
        raise UnsupportedError("a bytes literal is not supported")


def _function(tree: lark.Tree[lark.Token]) -> None:
    name = str(tree.children[0])
    if name == "has":
        field_selection(tree)
    else:
        _called(tree, name, FUNCTIONS, receiver=0, position=1)


def _called(
    tree: lark.Tree[lark.Token],
    name: str,
    known: Mapping[str, tuple[object, int]],
    *,
    receiver: int,
    position: int,
) -> None:
    if name not in known:
        raise UnsupportedError(f"the function {name}() is not supported")
    given = tree.children[position : position + 1]
    arguments = sum(len(each.children) for each in given if isinstance(each, lark.Tree))
    _, wanted = known[name]
    if arguments + receiver != wanted:
        raise UnsupportedError(f"{name}() takes {wanted - receiver} arguments, not {arguments}")
