"""A driver's version in the form that the API's attributes of the type `version` have."""

from __future__ import annotations

import re
from typing import Final

from dra_driver.model.names import ATTRIBUTE_BYTES

_NUMBERS: Final = re.compile(r"v?([0-9]+)\.([0-9]+)\.([0-9]+)(.*)", re.DOTALL)
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z]+(?:-+[0-9A-Za-z]+)*")
# An API server from 1.38 on refuses slices with greater ones (1.38.0-beta.0, `numericIdentifier` of
# pkg/apis/resource/validation), as CEL compares versions as int64.
_HIGHEST: Final = 10**18 - 1


def semantic_version(text: str) -> str | None:
    """The version after semver.org 2.0.0: three numbers, and what follows them as build metadata,
    by which versions are not ordered (``1.4.0.3`` → ``1.4.0+3``). The metadata is cut where the
    whole would have more than 64 characters. None where the text does not begin with three
    numbers, or with numbers that are too large."""
    match = _NUMBERS.fullmatch(text)
    if match is None or max(len(each) for each in match.groups()[:3]) > ATTRIBUTE_BYTES:
        return None
    numbers = [int(each) for each in match.groups()[:3]]
    if max(numbers) > _HIGHEST:
        return None
    version = ".".join(map(str, numbers))
    metadata = ".".join(_IDENTIFIER.findall(match[4]))
    metadata = metadata[: ATTRIBUTE_BYTES - len(version) - 1].rstrip(".-")
    return f"{version}+{metadata}" if metadata else version
