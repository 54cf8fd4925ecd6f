"""Carries one claim through its life, so that a kill between any two steps loses nothing.

Each method is for one claim and takes its locks itself. The order of the steps is the protocol of
docs/dev/journal.md: what is about to happen is durable before it happens.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum

from dra_driver.model.card import Card
from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import GcuError, HardwareError, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi import Injection, render
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.journal import Journal
from dra_driver.node.ledger import Holding, Ledger, State
from dra_driver.node.locks import Locks
from dra_driver.node.ports import Hardware
from dra_driver.node.records import Hold, Kind, Record, record
from dra_driver.node.steps import ModeSteps

logger = logging.getLogger(__name__)

Holds = tuple[Hold, ...]


class Outcome(StrEnum):
    """What it took to bring a claim to rest."""

    AT_REST = "at rest"
    UNDONE = "an unfinished prepare was undone"
    FINISHED = "what had begun was finished"
    RENDERED = "its CDI file was missing or outdated, and was written"
    ADOPTED = "taken into the journal from its CDI file"
    REMOVED = "its CDI file could not be read, and was removed"


class Keeper:
    """Prepares, keeps and unprepares claims on this node's cards."""

    def __init__(
        self,
        *,
        hardware: Hardware,
        journal: Journal,
        cdi: CdiDirectory,
        locks: Locks,
        steps: Mapping[Mode, ModeSteps],
        injection: Injection,
    ) -> None:
        self._hardware = hardware
        self._journal = journal
        self._cdi = cdi
        self._locks = locks
        self._steps = steps
        self._injection = injection

    def prepare(self, claim: ClaimRef, holds: Holds) -> Holds:
        """Give the claim its devices and the runtime its CDI file.

        Gives the holds that are in force: those of an earlier prepare if there was one. Raises
        Refused when a card is held by another claim, or the error of the step that failed; then
        nothing is left behind, or a record that accounts for it.
        """
        with self._own(claim.uid, holds) as held:
            if held is not None and held.state is State.PREPARED:
                self._show(held)
                return held.holds
            if held is not None and (held.state is State.UNPREPARING or held.holds != holds):
                self._take_back(held)
            cards = self._read_cards(holds)
            self._write(Kind.INTENT, claim, holds)
            try:
                self._carry_out(claim, holds, cards)
            except Exception:
                self._undo(claim, holds)
                raise
        return holds

    def keep(self, claim: ClaimRef) -> Holds | None:
        """Make sure that a prepared claim's CDI file is there and tells the truth.

        Gives its holds, or None if the claim is not prepared.
        """
        with self._own(claim.uid) as held:
            if held is None or held.state is not State.PREPARED:
                return None
            self._show(held)
            return held.holds

    def unprepare(self, claim: ClaimRef) -> None:
        """Take back what the claim has; nothing is a success, but for a CDI file to remove."""
        with self._own(claim.uid) as held:
            if held is None:
                self._cdi.remove(claim.uid)
            else:
                self._take_back(held)

    def settle(self, claim: ClaimRef, *, trust_file: bool) -> Outcome:
        """Bring a claim to rest that a killed agent left on its way; says what was done.

        An unfinished prepare was never answered, so it is undone. Only where `trust_file`, since
        the journal may have lost its end, a CDI file of the claim proves that it was.
        """
        with self._own(claim.uid) as held:
            if held is None:
                return Outcome.AT_REST
            if held.state is State.PREPARED:
                return Outcome.RENDERED if self._show(held) else Outcome.AT_REST
            if held.state is State.INTENT and trust_file and self._cdi.read(claim.uid):
                self._show(held)
                self._journal.write(record(Kind.PREPARED, held.claim, held.holds))
                return Outcome.FINISHED
            self._take_back(held)
            return Outcome.UNDONE if held.state is State.INTENT else Outcome.FINISHED

    def adopt(self, claim: ClaimRef, holds: Holds) -> None:
        """Take a claim into the journal of which only the CDI file tells; raises Refused when
        another claim holds its card."""
        with self._own(claim.uid, holds) as held:
            if held is None:
                self._write(Kind.PREPARED, claim, holds)

    @contextmanager
    def _own(self, uid: str, wanted: Holds = ()) -> Iterator[Holding | None]:
        """Lock the claim and the cards that it has or shall have; gives what it has."""
        with self._locks.claim(uid):
            # Only who has the claim's lock alters its holding, so it stays as read here.
            held = self._journal.snapshot().claims.get(uid)
            cards = {hold.card for hold in wanted} | (held.cards if held else set())
            with self._locks.cards(cards):
                yield held

    def _write(self, kind: Kind, claim: ClaimRef, holds: Holds) -> None:
        """Record that the claim holds this, unless another's hold stands against it."""

        def decide(ledger: Ledger) -> Sequence[Record]:
            ledger.admit(claim, holds)
            return [record(kind, claim, holds)]

        self._journal.commit(decide)

    def _carry_out(self, claim: ClaimRef, holds: Holds, cards: Mapping[PciAddress, Card]) -> None:
        for hold in holds:
            self._step(hold).create(claim, hold)
        self._cdi.write(claim.uid, render(claim, holds, cards, self._injection))
        self._journal.write(record(Kind.PREPARED, claim, holds))

    def _undo(self, claim: ClaimRef, holds: Holds) -> None:
        try:
            self._clear(claim, holds)
        except GcuError:
            # The intent stays in the journal and holds the cards; unprepare or the next start
            # undoes it.
            logger.exception("claim %s could not be undone yet", claim)

    def _take_back(self, held: Holding) -> None:
        if held.state is not State.UNPREPARING:
            self._journal.write(record(Kind.UNPREPARING, held.claim, held.holds))
        self._clear(held.claim, held.holds)

    def _clear(self, claim: ClaimRef, holds: Holds) -> None:
        """The file first, so that no container starts with what is being taken away; the record
        last, as it accounts for the rest."""
        self._cdi.remove(claim.uid)
        for hold in holds:
            self._step(hold).destroy(claim, hold)
        self._journal.write(record(Kind.FORGOTTEN, claim, ()))

    def _show(self, held: Holding) -> bool:
        """Write a prepared claim's CDI file where it is missing or its cards have other minors
        by now; say whether it was written."""
        present = self._cdi.read(held.claim.uid)
        if present is not None and any(hold.mode not in self._steps for hold in held.holds):
            # A newer version wrote it, and knows more of its mode than this one.
            return False
        try:
            cards = self._read_cards(held.holds)
        except HardwareError:
            if present is None:
                raise
            # Whatever runs with the claim goes on; what starts anew is told by the runtime.
            logger.warning("claim %s keeps its CDI file unexamined", held.claim, exc_info=True)
            return False
        wanted = render(held.claim, held.holds, cards, self._injection)
        if wanted == present:
            return False
        self._cdi.write(held.claim.uid, wanted)
        logger.warning("claim %s: its CDI file was missing or outdated", held.claim)
        return True

    def _read_cards(self, holds: Holds) -> dict[PciAddress, Card]:
        addresses = sorted({address for hold in holds for address in hold.sees})
        return {address: self._hardware.card(address) for address in addresses}

    def _step(self, hold: Hold) -> ModeSteps:
        try:
            return self._steps[hold.mode]
        except KeyError:
            raise Refused(
                f"device {hold.device} was prepared in mode {hold.mode}, which this version of "
                "the driver does not know",
                remedy="run the version of the driver that prepared it",
            ) from None
