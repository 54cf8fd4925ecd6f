"""The version of all programs; the build takes it from here, and the chart's must be the same."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
