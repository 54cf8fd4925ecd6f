"""How the functions of a library are written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dra_driver.selector.types import Type
from dra_driver.selector.values import Value


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function: static types and what computes the result.

    The checker may find that a call can only mean one overload; among `dynamic` ones the values
    choose all the same, as upstream's operators have one implementation for all types. `accepts`
    are the types that values must have, where those are less than what the checker asks. `work`
    tells, before it is done, what the call costs beyond the size of its arguments, in the units
    of `dra_driver.selector.interpreter.budget`. Where only the work itself shows its cost, the
    function is `metered`: it is given the budget, and then the values.
    """

    arguments: tuple[Type, ...]
    result: Type
    compute: Callable[..., Value]
    dynamic: bool = False
    accepts: tuple[Type, ...] | None = None
    work: Callable[..., int] | None = None
    metered: bool = False


Functions = Mapping[str, tuple[Overload, ...]]


@dataclass(frozen=True, slots=True)
class Library:
    """`functions` are called by name, operators among them; `methods` of their first argument."""

    functions: Functions
    methods: Functions


def merge(*libraries: Library) -> Library:
    """One library of several; overloads of one name stand beside each other, in order."""
    functions: dict[str, tuple[Overload, ...]] = {}
    methods: dict[str, tuple[Overload, ...]] = {}
    for library in libraries:
        for name, overloads in library.functions.items():
            functions[name] = functions.get(name, ()) + overloads
        for name, overloads in library.methods.items():
            methods[name] = methods.get(name, ()) + overloads
    return Library(functions, methods)
