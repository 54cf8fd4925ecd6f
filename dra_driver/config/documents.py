"""Reads YAML files, and shortens values for messages."""

from __future__ import annotations

import json
from pathlib import Path
from reprlib import Repr
from typing import Any, Final

import yaml

from dra_driver.model.errors import InvalidValue

_LONGEST: Final = 120  # characters

_BRIEF: Final = Repr()
_BRIEF.maxlevel = 3
_BRIEF.maxstring = _BRIEF.maxother = _LONGEST

# What PyYAML's constructors raise beside YAMLError for scalars that are not of their tag
# (``!!int ''``, ``!!bool maybe``, a date that does not exist), and for what is nested too deep.
_NOT_YAML: Final = (
    yaml.YAMLError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    RecursionError,
)


def read_yaml(path: Path, what: str, *, flag: str) -> Any:
    """The document in the file, which `flag` names; None for an empty one.

    Raises InvalidValue, calling it `what`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidValue(
            f"{what} {path} cannot be read: {reason}",
            remedy=f"name an existing file with {flag}",
        ) from error
    try:
        return yaml.safe_load(text)
    except _NOT_YAML as error:
        reason = brief(" ".join(str(error).split()))
        raise InvalidValue(
            f"{what} {path} is not YAML: {reason}", remedy="write it as key: value"
        ) from error


def given(value: object) -> str:
    """A given value for a message, as JSON if it is a scalar. It is cut while it is rendered: a few
    bytes of YAML can expand to more than the memory holds."""
    if isinstance(value, dict | list | tuple | set):
        return brief(_BRIEF.repr(value))
    return brief(json.dumps(value, default=str, ensure_ascii=False))


def brief(text: str) -> str:
    """The text, cut."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
