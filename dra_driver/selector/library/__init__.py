"""The functions that a selector may call, with their signatures."""

from __future__ import annotations

from typing import Final

from dra_driver.selector.library import (
    conversions,
    lists,
    operators,
    optionals,
    quantity,
    regex,
    semver,
    strings,
)
from dra_driver.selector.library.overload import Library, merge

LIBRARY: Final[Library] = merge(
    operators.LIBRARY,
    optionals.LIBRARY,
    conversions.LIBRARY,
    strings.LIBRARY,
    regex.LIBRARY,
    lists.LIBRARY,
    quantity.LIBRARY,
    semver.LIBRARY,
)
