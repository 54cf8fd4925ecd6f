"""CEL's static types, and when one may stand where another is wanted.

Source: github.com/google/cel-go v0.26.0, checker/types.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its name, with the types of what it holds. `variable` types are placeholders."""

    name: str
    parameters: tuple[Type, ...] = ()
    variable: bool = False

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.parameters))
        return f"{self.name}({inner})" if inner else self.name


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DYN: Final = Type("dyn")
DURATION: Final = Type("duration")
TIMESTAMP: Final = Type("timestamp")
QUANTITY: Final = Type("quantity")
SEMVER: Final = Type("semver")
DEVICE: Final = Type("device")
A: Final = Type("A", variable=True)
B: Final = Type("B", variable=True)

_NULLABLE: Final = frozenset(
    {*(each.name for each in (DURATION, TIMESTAMP, QUANTITY, SEMVER, DEVICE)), "optional_type"}
)


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def unwrapped(kind: Type) -> tuple[Type, bool]:
    """What an optional type holds, other types as they are; and whether it is an optional one."""
    optional = kind.name == "optional_type"
    return (kind.parameters[0], True) if optional else (kind, False)


class Unifier:
    """What the type variables of one expression stand for."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._fresh = 0

    def fresh(self) -> Type:
        """A type variable that nothing is known of yet."""
        self._fresh += 1
        return Type(f"_{self._fresh}", variable=True)

    def assignable(self, given: list[Type], wanted: list[Type]) -> bool:
        """Whether values of the given types may stand for the wanted ones; learns what the
        variables are when they may, and nothing when they may not."""
        before = dict(self._bound)
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        self._bound = before
        return False

    def resolve(self, kind: Type) -> Type:
        """The type with all that is known put in."""
        while kind.variable and kind.name in self._bound:
            kind = self._bound[kind.name]
        if not kind.parameters:
            return kind
        return Type(kind.name, tuple(map(self.resolve, kind.parameters)))

    def renamed(self, kinds: list[Type]) -> list[Type]:
        """The types of a signature with variables of their own."""
        names: dict[str, Type] = {}
        return [self._rename(kind, names) for kind in kinds]

    def final(self, kind: Type) -> Type:
        """The type when all is known: a variable that nothing was learnt of is dyn."""
        return _without_variables(self.resolve(kind))

    def join(self, previous: Type, current: Type) -> Type:
        """The more general of two types of a list's elements, dyn where they do not agree."""
        if not self.assignable([previous], [current]):
            return DYN
        return previous if _less_specific(previous, current) else current

    def _rename(self, kind: Type, names: dict[str, Type]) -> Type:
        if kind.variable:
            return names.setdefault(kind.name, self.fresh())
        if not kind.parameters:
            return kind
        return Type(kind.name, tuple(self._rename(each, names) for each in kind.parameters))

    def _fits(self, given: Type, wanted: Type) -> bool:
        if wanted.variable:
            fits = self._bind(given, wanted)
            if fits is not None:
                return fits
        if given.variable:
            return self._bind(wanted, given) is True
        if DYN in (given, wanted):
            return True
        if NULL in (given, wanted):
            return given == wanted or bool({given.name, wanted.name} & _NULLABLE)
        return (
            given.name == wanted.name
            and len(given.parameters) == len(wanted.parameters)
            and all(map(self._fits, given.parameters, wanted.parameters))
        )

    def _bind(self, kind: Type, variable: Type) -> bool | None:
        """Whether the variable is or becomes the type; None where it cannot hold it."""
        if kind == variable:
            return True
        known = self._bound.get(variable.name)
        if known is None:
            if self._occurs(variable, kind):
                return None
            self._bound[variable.name] = kind
            return True
        if kind == known:
            return True
        if not self._fits(kind, known):
            return False
        general = kind if _less_specific(kind, known) else known
        if not self._occurs(variable, general):
            self._bound[variable.name] = general
        return True

    def _occurs(self, variable: Type, kind: Type) -> bool:
        if kind == variable:
            return True
        if kind.variable:
            known = self._bound.get(kind.name)
            return known is not None and self._occurs(variable, known)
        return any(self._occurs(variable, each) for each in kind.parameters)


def _without_variables(kind: Type) -> Type:
    if kind.variable:
        return DYN
    return Type(kind.name, tuple(map(_without_variables, kind.parameters)))


def _less_specific(one: Type, other: Type) -> bool:
    if one == DYN or one.variable:
        return True
    if other == DYN or other.variable or one.name != other.name:
        return False
    return all(map(_less_specific, one.parameters, other.parameters))
