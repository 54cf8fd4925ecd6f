"""Semantic versions (k8s.io/apiserver, pkg/cel/library/semverlib.go, and blang/semver v4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import BOOL, INT, SEMVER, STRING
from dra_driver.selector.values import UINT64_MAX, Opaque

_NUMBER: Final = r"(?:0|[1-9][0-9]{0,19})"
_WORD: Final = r"[0-9]*[a-zA-Z-][0-9a-zA-Z-]*"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_WORD}|{_NUMBER})(?:\.(?:{_WORD}|{_NUMBER}))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)

_Part = tuple[bool, int, str]  # numbers go before words, and each among themselves


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    """A version; build metadata does not tell versions apart. `prerelease` is empty for a
    release, which comes after all of its prereleases."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[_Part, ...]

    @classmethod
    def parse(cls, text: str) -> Semver:
        """Raises EvaluationError for a text that is no semantic version."""
        found = _VERSION.fullmatch(text)
        if found is None:
            raise EvaluationError(f"{text!r} is not a semantic version")
        major, minor, patch = (int(each) for each in found.group(1, 2, 3))
        parts = tuple(_part(each) for each in (found[4] or "").split(".") if each)
        if max(major, minor, patch, *(number for _, number, _ in parts)) > UINT64_MAX:
            raise EvaluationError(f"{text!r} has a number that is out of range")
        return cls(major, minor, patch, parts)

    @property
    def rank(self) -> tuple[int, int, int, bool, tuple[_Part, ...]]:
        """What versions are ordered by."""
        return self.major, self.minor, self.patch, not self.prerelease, self.prerelease


def _part(text: str) -> _Part:
    return (False, int(text), "") if text.isdigit() else (True, 0, text)


def semver(text: str, normalize: bool = False) -> Semver:
    return Semver.parse(_normal(text) if normalize else text)


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver(text, normalize)
    except EvaluationError:
        return False
    return True


def compare_to(left: Semver, right: Semver) -> int:
    return (left.rank > right.rank) - (left.rank < right.rank)


def _normal(text: str) -> str:
    """Without a leading v and leading zeros, and with all three numbers."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and any(each in parts[-1] for each in "+-"):
        raise EvaluationError("a short version cannot have a prerelease or build metadata")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in {*"0123456789"} - {""} else f"0{stripped}"


def _signed(number: int) -> int:
    # Go turns a uint64 into an int64 by its bits.
    return number if number < 2**63 else number - 2**64


LIBRARY: Final = Library(
    functions={
        "semver": (
            Overload((STRING,), SEMVER, semver),
            Overload((STRING, BOOL), SEMVER, semver),
        ),
        "isSemver": (
            Overload((STRING,), BOOL, is_semver),
            Overload((STRING, BOOL), BOOL, is_semver),
        ),
    },
    methods={
        "major": (Overload((SEMVER,), INT, lambda v: _signed(v.major)),),
        "minor": (Overload((SEMVER,), INT, lambda v: _signed(v.minor)),),
        "patch": (Overload((SEMVER,), INT, lambda v: _signed(v.patch)),),
        "compareTo": (Overload((SEMVER, SEMVER), INT, compare_to),),
        "isLessThan": (Overload((SEMVER, SEMVER), BOOL, lambda a, b: compare_to(a, b) < 0),),
        "isGreaterThan": (Overload((SEMVER, SEMVER), BOOL, lambda a, b: compare_to(a, b) > 0),),
    },
)
