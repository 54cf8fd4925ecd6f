"""What is preferred where several choices fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Packing(StrEnum):
    """Fill what is in use first, or use what is emptiest first."""

    BINPACK = "binpack"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Policy:
    """For nodes and for the cards of a node separately."""

    nodes: Packing = Packing.BINPACK
    cards: Packing = Packing.BINPACK
