"""Regular expressions: RE2 itself, whose time is linear in the text (k8s.io/apiserver,
pkg/cel/library/regex.go; Go's regexp package is RE2's twin)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import BOOL, INT, STRING, list_of

_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # known to RE2 alone


@lru_cache(256)
def compiled(pattern: str) -> Any:
    """The pattern, ready to search. Raises EvaluationError where it is none, RefusedError where
    RE2 needs more than its 8 MiB for it."""
    options = re2.Options()
    options.log_errors = False
    if _ANY_BYTE.search(pattern):
        raise EvaluationError(f"{pattern!r} is not a regular expression: invalid escape sequence")
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        if "too large" in reason:  # Go's limit may be another one
            raise RefusedError(f"the regular expression {pattern!r}: {reason}") from error
        raise EvaluationError(f"{pattern!r} is not a regular expression: {reason}") from error


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere."""
    return compiled(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """The first and longest-tried match; empty where there is none."""
    found = compiled(pattern).search(text)
    return "" if found is None else str(found.group())


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """At most `limit` matches, or all where it is negative; like Go, without an empty match right
    after another one."""
    found: list[str] = []
    last_end = -1
    for each in compiled(pattern).finditer(text):
        if len(found) == limit:
            break
        if each.start() != each.end() or each.start() != last_end:
            found.append(str(each.group()))
        last_end = each.end()
    return found


_TEXTS: Final = (STRING, STRING)
PATTERN_METHODS: Final = frozenset({"matches", "find", "findAll"})
"""Those whose second argument is a pattern, which is checked ahead where it is a literal."""

LIBRARY: Final = Library(
    functions={"matches": (Overload(_TEXTS, BOOL, matches),)},
    methods={
        "matches": (Overload(_TEXTS, BOOL, matches),),
        "find": (Overload(_TEXTS, STRING, find),),
        "findAll": (
            Overload(_TEXTS, list_of(STRING), find_all),
            Overload((*_TEXTS, INT), list_of(STRING), find_all),
        ),
    },
)
