"""A mutant: a fault that is found again in another state of the source file."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from tests.mutants.edits import Edit, Kind, Positions

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SHOWN = 48
"""Characters of what was there and what is there now."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault in a file of the checkout, by its path there.

    `text` is the function with the fault, or the statement if it is in none; `start`, `end` and
    `new` are its edit in that text. `occurrence` counts equal texts before it in the file. `name`
    is the function's, for people.
    """

    file: str
    name: str
    text: str
    occurrence: int
    kind: Kind
    start: int
    end: int
    new: str

    @classmethod
    def of(cls, file: str, source: str, edit: Edit) -> Mutant:
        """The mutant for an edit of the file's whole text."""
        name, start, end = _scope(source, edit)
        text = source[start:end]
        return cls(
            file=file,
            name=name,
            text=text,
            occurrence=list(_occurrences(source, text)).index(start),
            kind=edit.kind,
            start=edit.start - start,
            end=edit.end - start,
            new=edit.new,
        )

    def edit(self, source: str) -> Edit | None:
        """The edit of that text of the file; None if the function is another one there."""
        found = list(_occurrences(source, self.text))
        if self.occurrence >= len(found):
            return None
        begin = found[self.occurrence]
        return Edit(self.kind, begin + self.start, begin + self.end, self.new)

    def __str__(self) -> str:
        """What was changed; for a name or an operator with what is around it."""
        old, new = self.text[self.start : self.end], self.new
        if "\n" not in old and len(old) < _SHOWN // 4:
            before = self.text[: self.start].rpartition("\n")[2].lstrip()[-_SHOWN // 4 :]
            after = self.text[self.end :].partition("\n")[0][: _SHOWN // 4]
            old, new = before + old + after, before + new + after
        return f"{_shortened(old)} => {_shortened(new)}"


def line_of(source: str, edit: Edit) -> int:
    """The line where the edit begins, from 1 on."""
    return source.count("\n", 0, edit.start) + 1


def as_json(mutants: Iterable[Mutant]) -> str:
    """The text of a file that keeps mutants."""
    return json.dumps([asdict(each) for each in mutants], indent=1) + "\n"


def from_json(text: str) -> list[Mutant]:
    """The mutants of such a file."""
    return [Mutant(**{**each, "kind": Kind(each["kind"])}) for each in json.loads(text)]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _scope(source: str, edit: Edit) -> tuple[str, int, int]:
    """Name, start and end of the innermost function around the edit; without one, of the statement
    of the module or class."""
    where = Positions(source)
    around = list(_around(ast.parse(source), where, edit.start))
    named = [n for n, each in enumerate(around) if isinstance(each, _NAMED)]
    functions = [n for n in named if not isinstance(around[n], ast.ClassDef)]
    plain = [n for n in range(len(around)) if n not in named]
    chosen = next(iter((*functions[::-1], *plain, *named[::-1])))
    names = [each.name for each in around[: chosen + 1] if isinstance(each, _NAMED)]
    return ".".join(names), where.start(around[chosen]), where.end(around[chosen])


def _around(node: ast.AST, where: Positions, position: int) -> Iterator[ast.stmt]:
    """The statements around the position, the outermost one first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            if where.start(child) <= position < where.end(child):
                yield child
                yield from _around(child, where, position)
        elif isinstance(child, ast.excepthandler | ast.match_case):
            yield from _around(child, where, position)


def _occurrences(source: str, text: str) -> Iterator[int]:
    """Where the text is in the source as whole lines, which may be indented."""
    pattern = re.compile(rf"^[ \t]*({re.escape(text)})[ \t]*(?:#.*)?$", re.MULTILINE)
    return (found.start(1) for found in pattern.finditer(source))
