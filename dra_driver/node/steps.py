"""What a mode adds to preparing a claim, between the intent and the CDI file."""

from __future__ import annotations

from typing import Protocol

from dra_driver.model.claim import ClaimRef
from dra_driver.node.records import Hold


class ModeSteps(Protocol):
    """The effects on a card that one hold needs.

    Both are called with the card's lock held and the intent (to prepare, to unprepare) durable,
    may find their work done already by a process that was killed, and raise GcuError.
    """

    def create(self, claim: ClaimRef, hold: Hold) -> None:
        """Make on the card what the hold stands for."""

    def destroy(self, claim: ClaimRef, hold: Hold) -> None:
        """Take it away again, whether or not `create` came to its end."""


class WholeCard:
    """A whole card is there already, in the state in which it was left."""

    def create(self, claim: ClaimRef, hold: Hold) -> None:
        """Nothing is made."""

    def destroy(self, claim: ClaimRef, hold: Hold) -> None:
        """Nothing is taken away."""
