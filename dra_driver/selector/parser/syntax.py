"""A selector's syntax tree, with macros and operators told apart from functions."""

from __future__ import annotations

from dataclasses import dataclass

from dra_driver.selector.values import Value


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``operand.field``, ``operand.?field`` where it is `optional`, or ``has(operand.field)`` where
    it is a `test`."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method of `target`, or an operator under cel-go's name for it (``_+_``)."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal; the elements at the places in `optional` are written ``?element``."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map literal; the entries at the places in `optional` are written ``?key: value``."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Logical:
    """``||`` (absorbing True) or ``&&`` (absorbing False) over any number of operands."""

    absorbing: bool
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Comprehension:
    """``range.macro(variable, body)``; a ``map`` with a filter has that as its `condition`."""

    macro: str
    range: Node
    variable: str
    body: Node
    condition: Node | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """``cel.bind(variable, value, body)``; the value is evaluated when it is first read."""

    variable: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True)
class OptionalMap:
    """``target.optMap(variable, body)``, or ``optFlatMap`` where it is `flat`."""

    target: Node
    variable: str
    body: Node
    flat: bool


Node = (
    Literal
    | Name
    | Select
    | Call
    | ListOf
    | MapOf
    | Logical
    | Conditional
    | Comprehension
    | Bind
    | OptionalMap
)
