"""Words that several commands print. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def first_of(names: Sequence[str], most: int, others: str = "more") -> str:
    """The first names, such as ``a, b and 3 more``; `others` is the word for the rest."""
    shown, rest = ", ".join(names[:most]), len(names) - most
    return f"{shown} and {rest} {others}" if rest > 0 else shown


def labelled(title: str, statements: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A title, and below it a line for each label with its text."""
    yield title
    for label, text in statements:
        yield f"  {label + ':':<8}{text}"
