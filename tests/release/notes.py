"""The notes of a release: its section of the CHANGELOG."""

from __future__ import annotations

import re
from typing import Final

from tests.cluster.errors import BuildError

UNRELEASED: Final = "Unreleased"
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")

_TEXT: Final = r"\1"


def cut(changelog: str, version: str, *, draft: bool) -> str:
    """The section of `version`; where there is none a `draft` has the section Unreleased.
    Links to files of the checkout lose their targets, as the notes are read elsewhere.
    Raises BuildError."""
    sections = {title: text for title, text in _sections(changelog) if text.strip()}
    found = sections.get(version)
    if found is None and draft:
        found = sections.get(UNRELEASED)
    if found is None:
        raise BuildError(
            f"CHANGELOG.md has no section {version}: rename the section {UNRELEASED} to "
            f"`{version} - DATE`, or make a draft (DRAFT=yes)"
        )
    return f"# gcu-dra-driver {version}\n\n{_LINK.sub(_TEXT, found).strip()}\n"


def _sections(changelog: str) -> list[tuple[str, str]]:
    parts = re.split(r"^## \[?([^\s\]]+)\]?[^\n]*$", changelog, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))
