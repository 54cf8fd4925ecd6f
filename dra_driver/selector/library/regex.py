"""Regular expressions: RE2 itself, whose time is linear in the text (k8s.io/apiserver,
pkg/cel/library/regex.go; Go's regexp package is RE2's twin).

Linear is not cheap: one Unicode class of two letters takes RE2 25 microseconds to read, and where
its memory does not hold the automaton, a character of text costs time for each instruction of the
pattern. RE2 cannot be interrupted, so patterns and searches are bounded such that none takes longer
than some 50 ms, and the budget pays before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.interpreter.budget import CostBudget
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import BOOL, INT, STRING, list_of

_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # known to RE2 alone
_LONGEST: Final = 1_024  # characters; it takes RE2 up to 30 ms to read as many
_SHOWN: Final = 100  # characters of a pattern that people are told
_MEMORY: Final = 256 * 1024  # bytes for one pattern; to find that it takes more costs a millisecond
_COMPILE: Final = 2_000  # steps for a pattern that uses up the memory
_READ: Final = 60  # steps for one character of a pattern
_INSTRUCTIONS: Final = 64  # with so many, a character of text costs a step more
_SEARCH: Final = 100_000  # most steps of one search, as nothing can interrupt it
_FOUND: Final = 10  # steps for one match, beside the search


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, ready to search; a character of text costs `factor` steps."""

    regexp: Any
    factor: int

    def pay(self, budget: CostBudget, length: int) -> None:
        """Before a search through so many characters. Raises RefusedError."""
        cost = length * self.factor
        if cost > _SEARCH:
            raise RefusedError(f"a search through {length} characters costs {cost} steps")
        budget.spend(cost)
        budget.check()


def compiled(budget: CostBudget, pattern: str) -> Pattern:
    """Raises EvaluationError where the text is no pattern, RefusedError where it is too large.
    An expression pays once for a pattern, whoever compiled it before."""
    if len(pattern) > _LONGEST:
        raise RefusedError(f"a regular expression is longer than {_LONGEST} characters")
    if pattern not in budget.paid:
        budget.spend(_COMPILE + _READ * len(pattern))
        budget.paid.add(pattern)
    budget.check()
    found = _compile(pattern)
    if isinstance(found, Pattern):
        return found
    error, reason = found
    raise error(reason)


@lru_cache(256)
def _compile(pattern: str) -> Pattern | tuple[type[EvaluationError | RefusedError], str]:
    """The pattern, or the error; both take about as long to find."""
    if _ANY_BYTE.search(pattern):
        reason = "invalid escape sequence"
        return EvaluationError, f"{_shown(pattern)} is not a regular expression: {reason}"
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = True  # nothing here asks for groups, and they cost for each match
    try:
        regexp = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        if "too large" in reason:  # Go's limit may be another one
            return RefusedError, f"the regular expression {_shown(pattern)}: {reason}"
        return EvaluationError, f"{_shown(pattern)} is not a regular expression: {reason}"
    return Pattern(regexp, 1 + regexp.programsize // _INSTRUCTIONS)


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}…")


def matches(budget: CostBudget, text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere."""
    found = compiled(budget, pattern)
    found.pay(budget, len(text))
    return found.regexp.search(text) is not None


def find(budget: CostBudget, text: str, pattern: str) -> str:
    """The first and longest-tried match; empty where there is none."""
    searched = compiled(budget, pattern)
    searched.pay(budget, len(text))
    found = searched.regexp.search(text)
    return "" if found is None else str(found.group())


def find_all(budget: CostBudget, text: str, pattern: str, limit: int = -1) -> list[str]:
    """At most `limit` matches, or all where it is negative; like Go, without an empty match right
    after another one."""
    searched = compiled(budget, pattern)
    searched.pay(budget, len(text))
    found: list[str] = []
    last_end = -1
    for match in searched.regexp.finditer(text):
        if len(found) == limit:
            break
        if match.start() != match.end() or match.start() != last_end:
            found.append(str(match.group()))
        last_end = match.end()
        # The next search may go to the end of the text again.
        budget.spend(_FOUND)
        searched.pay(budget, len(text) - last_end)
    return found


_TEXTS: Final = (STRING, STRING)
PATTERN_METHODS: Final = frozenset({"matches", "find", "findAll"})
"""Those whose second argument is a pattern, which is checked ahead where it is a literal."""

LIBRARY: Final = Library(
    functions={"matches": (Overload(_TEXTS, BOOL, matches, metered=True),)},
    methods={
        "matches": (Overload(_TEXTS, BOOL, matches, metered=True),),
        "find": (Overload(_TEXTS, STRING, find, metered=True),),
        "findAll": (
            Overload(_TEXTS, list_of(STRING), find_all, metered=True),
            Overload((*_TEXTS, INT), list_of(STRING), find_all, metered=True),
        ),
    },
)
