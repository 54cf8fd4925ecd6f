"""JSON of the API server's, whoever wrote what stands in it.

The server takes what is nested 10,000 levels deep: in the ``parameters`` of a claim, say, which any
user may write. Python's own parser gives up below 1,000, as does all that goes through an object
afterwards, and one such claim in a list would keep all others from us. So would bytes in them that
are no UTF-8: the server hands them on as they came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic_core import from_json

# Levels; what we read is below 20, and `from_json` takes 200.
_DEEPEST: Final = 150
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def decode(text: bytes) -> Any:
    """The value; what is nested too deep in it is None. Raises ValueError for what is no JSON."""
    try:
        # Names recur from object to object; texts do not, and what is kept of them stays.
        return from_json(text, cache_strings="keys")
    except ValueError:  # too deep, or bytes or half a character as \ud800, which Go passes on
        return json.loads(b"".join(_cut(text)).decode(errors="replace"))


def _cut(text: bytes) -> Iterator[bytes]:
    depth = begin = 0
    for found in _TOKEN.finditer(text):
        if found[0] in b"[{":
            depth += 1
            if depth == _DEEPEST + 1:
                yield text[begin : found.start()] + b"null"
        elif found[0] in b"]}":
            if depth == _DEEPEST + 1:
                begin = found.end()
            depth -= 1
    yield text[begin:]
