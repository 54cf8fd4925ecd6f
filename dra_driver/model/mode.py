"""The three modes of a card. A card is in one of them at a time, first come first served."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """The value is the device attribute ``type`` and the prefix of a device's name."""

    WHOLE = "whole"
    SHARED = "shared"
    DRS = "drs"
