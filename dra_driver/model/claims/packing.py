"""What is preferred where several choices fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Packing(StrEnum):
    """Fill what is in use first, or use what is emptiest first."""

    BINPACK = "binpack"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class PackingChoice:
    """What somebody says of it, for nodes and for the cards of a node separately; None where
    nothing is said."""

    nodes: Packing | None = None
    cards: Packing | None = None

    def over(self, earlier: PackingChoice) -> PackingChoice:
        """Both together, where this one wins and leaves what it does not say."""
        return PackingChoice(self.nodes or earlier.nodes, self.cards or earlier.cards)
