"""What of a device an expression reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.syntax import Node

Path = tuple[str, ...]
"""``("attributes", domain, name)``, or the beginning of it: then everything below it is read."""

Aliases = Mapping[str, Path | None]


def reads(node: Node) -> frozenset[Path]:
    """The paths whose values decide what the expression evaluates to."""
    return frozenset(_reads(node, {"device": ()}))


def _reads(node: Node, aliases: Aliases) -> Iterator[Path]:
    path = _path(node, aliases)
    if path is not None:
        yield path[:3]
        return
    match node:
        case syntax.Bind(variable, value, body) if (bound := _path(value, aliases)) is not None:
            # Only what the body reads of the variable counts.
            yield from _reads(body, {**aliases, variable: bound})
        case syntax.Bind(variable, value, body) | syntax.OptionalMap(value, variable, body):
            # Whether an optional value is there counts, even where the body does not read it.
            yield from _reads(value, aliases)
            yield from _reads(body, {**aliases, variable: None})
        case syntax.Comprehension(_, over, variable, body, condition):
            yield from _reads(over, aliases)
            for inner in (body, condition):
                if inner is not None:
                    yield from _reads(inner, {**aliases, variable: None})
        case _:
            for child in _children(node):
                yield from _reads(child, aliases)


def _path(node: Node, aliases: Aliases) -> Path | None:
    """The path that the node is, None where it is more than a chain of constant names."""
    match node:
        case syntax.Name(name):
            return aliases.get(name)
        case syntax.Select(operand, field):
            path = _path(operand, aliases)
        case syntax.Call("_[_]" | "_[?_]", None, (operand, syntax.Literal(str(field)))):
            path = _path(operand, aliases)
        case _:
            return None
    return None if path is None else (*path, field)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case syntax.Select(child):
            return (child,)
        case syntax.Call(_, target, children):
            return children if target is None else (target, *children)
        case syntax.MapOf(entries):
            return tuple(each for entry in entries for each in entry)
        case syntax.ListOf(children) | syntax.Logical(_, children):
            return children
        case syntax.Conditional(condition, then, otherwise):
            return condition, then, otherwise
    return ()
