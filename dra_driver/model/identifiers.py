"""Identifiers that come from outside and become part of a file's name."""

from __future__ import annotations

import re
from typing import Final

from dra_driver.model.errors import InvalidValue

_SAFE: Final = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?")


def check_id(text: str, what: str) -> str:
    """`text` if it can be part of a file's name; raises InvalidValue otherwise.

    Kubernetes' identifiers are UUIDs, but the API server does not promise it.
    """
    if _SAFE.fullmatch(text) is None:
        raise InvalidValue(f"{text[:80]!r} is not a {what}")
    return text
