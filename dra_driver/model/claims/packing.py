"""What is preferred where several choices fit."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Packing(StrEnum):
    """The policies by the names that settings and claims have for them. What they do is in
    `controller.allocator.packing`."""

    BINPACK = "binpack"
    SPREAD = "spread"

    @property
    def preferred(self) -> str:
        """For people: which one is preferred, in words for nodes and cards alike."""
        return "the fullest that fits" if self is Packing.BINPACK else "the emptiest"


class PackingChoice(msgspec.Struct, frozen=True):
    """The policies that somebody chose, for nodes and for the cards of a node separately; None
    where nothing is said."""

    nodes: Packing | None = None
    cards: Packing | None = None
