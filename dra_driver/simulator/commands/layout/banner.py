"""The banner before most outputs."""

from __future__ import annotations

from typing import Final

_RULE: Final = "-" * 79
_BANNER: Final = f"""\
{_RULE}
--------------------- Enflame System Management Interface ---------------------
--------- Enflame Tech, All Rights Reserved. 2024-2025 Copyright (C) ----------
{_RULE}
{" " * 79}
"""


def banner(*, shown: bool) -> str:
    """The banner with the newline that ends it, or nothing for tools that leave it out."""
    return _BANNER if shown else ""
