"""Carries one holding through its life, so that a kill between any two steps loses nothing.

Each method is for one owner, a claim or a grant, and takes its locks itself. The order of the steps
is the protocol of docs/dev/journal.md: what is about to happen is durable before it happens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from enum import StrEnum

from dra_driver.hardware.drs.errors import CardGone
from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import GcuError, HardwareError
from dra_driver.model.mode import Mode
from dra_driver.model.owner import Owner, Remnant
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.cdi.files import CdiSpecs, seen
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Holding, Ledger, State
from dra_driver.node.checkpoint.records import CardKind, Hold, Kind, Record, card_record, record
from dra_driver.node.claims.cancellation import Awaited, always, check_awaited
from dra_driver.node.claims.device_ops import CardWork, Left
from dra_driver.node.claims.failures import Failures
from dra_driver.node.claims.orphans import remnant, remnant_cards
from dra_driver.node.claims.reallocation import (
    has_same_names,
    is_in_force,
    is_spent,
    keeps_names,
    renewed,
    renewing,
    spent,
)
from dra_driver.node.claims.recreated import Remade, remade
from dra_driver.node.locks import Locks
from dra_driver.node.modes.driver import ModeSteps
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)

Holds = tuple[Hold, ...]


class Outcome(StrEnum):
    """What it took to bring a claim to rest."""

    AT_REST = "at rest"
    UNDONE = "an unfinished prepare was undone"
    FINISHED = "what had begun was finished"
    REMADE = "its DRS instance was gone, and was made anew"
    RENDERED = "its CDI file was missing or outdated, and was written"
    ADOPTED = "taken into the journal from its CDI file"
    REMOVED = "its CDI file could not be read, and was removed"


class Keeper:
    """Prepares, keeps and unprepares what owners hold of this node's cards."""

    def __init__(
        self,
        *,
        hardware: Hardware,
        journal: Journal,
        cdi: CdiDirectory,
        locks: Locks,
        steps: Mapping[Mode, ModeSteps],
        injection: Injection,
        failures: Failures,
        remade: Callable[[Remade], None] = lambda _: None,
    ) -> None:
        """`remade` is told of each instance that went under a claim of which containers may run,
        whoever noticed; it neither raises nor waits."""
        self._hardware = hardware
        self._journal = journal
        self._locks = locks
        self._failures = failures
        self._tell_remade = remade
        self._work = CardWork(hardware, journal, steps)
        self._specs = CdiSpecs(hardware, cdi, injection)

    def trying(self, owner: Owner, holds: Holds) -> AbstractContextManager[None]:
        """Around what comes before `prepare` in the same try: it has failed as one of its steps."""
        return self._failures.counted(owner, holds)

    def prepare(self, owner: Owner, holds: Holds, *, awaited: Awaited = always) -> Holds:
        """Give the owner its devices and the runtime its CDI file.

        Gives the holds that are in force: those of an earlier prepare if there was one. Raises
        Refused when a card is held by another owner or this is not `awaited` any more, or the
        error of the step that failed; then nothing is left behind, or a record that accounts for
        it.
        """
        with self._own(owner.uid, holds) as held:
            if held is not None and is_in_force(owner, held, holds):
                self._maintain(self._renewed(self._recorded(held), owner), awaited=True)
                return held.holds
            check_awaited(owner, awaited)
            with self._failures.counted(owner, holds):
                if held is not None:
                    holds = self._exchange(held, holds)
                holds = self._make(owner, holds)
            self._failures.succeeded(owner, (h.device for h in holds if not h.admin_access))
        return holds

    def keep(self, owner: Owner) -> Holds | None:
        """Make sure that what a prepared claim has is there, and its CDI file tells the truth.

        Gives its holds, or None if the claim is not prepared.
        """
        with self._own(owner.uid) as held:
            if held is None or held.state is not State.PREPARED:
                return None
            self._maintain(self._recorded(held), awaited=True)
            return held.holds

    def unprepare(self, owner: Owner) -> None:
        """Take back what the owner has; nothing is a success, but for a CDI file to remove.

        What is on a card that is gone, or fails try after try, is taken away when the card allows
        it: a `Remnant` keeps the record that says so, but no pod waits for it. Where the journal
        has lost the record, the CDI file tells what there is to take back.
        """
        with self._own(owner.uid, recall=True) as held:
            if held is None:
                self._specs.remove(owner.uid)
                self._failures.unprepared(owner, ())
                return
            self._give_back(held, forget=True)

    def release(self, seen: Holding) -> bool:
        """Unprepare, as long as all is as it was `seen`; says whether it was.

        An owner that was given its devices again meanwhile is left alone: who decided that it
        needs them no longer did not know of that.
        """
        with self._own(seen.owner.uid) as held:
            if held != seen:
                return False
            self._take_back(held)
            self._failures.unprepared(held.owner, held.holds)
            return True

    def settle(self, owner: Owner, *, examine: bool = True) -> Outcome:
        """Bring an owner to rest that a killed agent left on its way; says what was done.

        An unfinished prepare was never answered, so it is undone, unless the journal has lost the
        record that it was. `examine` looks whether what a prepared claim has on its cards is still
        there.
        """
        with self._own(owner.uid) as held:
            if held is None:
                return Outcome.AT_REST
            if is_spent(held):
                self._specs.remove(owner.uid)  # of admin access there is nothing else to take back
                return Outcome.AT_REST
            if held.state is State.PREPARED:
                if not held.records:
                    self._maintain(self._recorded(held))
                    return Outcome.FINISHED
                return self._maintain(held) if examine else self._show(held)
            self._take_back(held)
            if isinstance(held.owner, Remnant):
                self._failures.unprepared(held.owner, held.holds)
            return Outcome.UNDONE if held.state is State.INTENT else Outcome.FINISHED

    def recall(self, uid: str) -> Outcome:
        """Take an owner into the journal of which only the CDI file tells: it proves that all was
        prepared, and a container may be running with it. One that cannot be read serves no runtime
        either. Raises Refused when another one holds its card."""
        with self._own(uid, recall=True) as held:
            if held is None:
                return Outcome.REMOVED if self._specs.remove(uid) else Outcome.AT_REST
            if held.records:
                return Outcome.AT_REST
            self._recorded(held)
            return Outcome.ADOPTED

    def unrecorded(self) -> frozenset[str]:
        """The UIDs of CDI files without a record. The files come first: a record comes before its
        file, and goes after it."""
        return self._specs.uids() - self._journal.snapshot().holdings.keys()

    def vacate(self, card: PciAddress) -> None:
        """Switch a card of ours out of DRS mode of which nobody holds anything in it; raises the
        error of the step that failed."""
        with self._locks.cards([card]):
            ledger = self._journal.snapshot()
            if card in ledger.switched and not ledger.dividers_of(card):
                self._work.vacate(card)

    @contextmanager
    def _own(
        self, uid: str, wanted: Holds = (), *, recall: bool = False
    ) -> Iterator[Holding | None]:
        """Lock the owner and the cards that it has or shall have; gives what it has, with `recall`
        or after a loss also as its CDI file alone tells it, without `records` then."""
        with self._locks.claim(uid):
            # Only who has the owner's lock alters its holding, so it stays as read here.
            held = self._journal.snapshot().holdings.get(uid)
            if held is None and (recall or not self._journal.is_complete):
                held = self._specs.told(uid)
            elif held is not None and self._may_be_prepared(held):
                held = self._specs.told(uid) or held
            cards = {hold.card for hold in wanted if not hold.admin_access}
            cards |= held.cards if held else set()
            with self._locks.cards(cards):
                yield held

    def _may_be_prepared(self, held: Holding) -> bool:
        """Whether the record may be lost by which an intent came to its end: its CDI file proves
        then that it did, and tells more than an intent can."""
        return held.state is State.INTENT and not self._journal.is_complete

    def _recorded(self, held: Holding) -> Holding:
        """What is held, with a record of it; raises Refused when another one holds its card."""
        if not held.records:
            self._write(Kind.PREPARED, held.owner, held.holds)
        return held

    def _write(
        self, kind: Kind, owner: Owner, holds: Holds, totals: Mapping[str, int] | None = None
    ) -> None:
        """Record that the owner holds this, unless another's hold stands against it."""

        def decide(ledger: Ledger) -> Sequence[Record]:
            ledger.admit(owner, holds, totals)
            return [record(kind, owner, holds)]

        self._journal.commit(decide)

    def _make(self, owner: Owner, holds: Holds) -> Holds:
        cards = self._specs.read_cards(seen(holds), holds)
        holds = self._work.survey(holds, cards)
        self._write(Kind.INTENT, owner, holds, self._work.totals(holds, cards))
        try:
            holds = self._work.create(owner, holds, cards)
            self._specs.write(owner, holds, cards)
            self._journal.write(record(Kind.PREPARED, owner, holds))
        except Exception:
            self._undo(owner.uid)
            raise
        return holds

    def _undo(self, uid: str) -> None:
        try:
            self._clear(self._journal.snapshot().holdings[uid])
        except GcuError:
            # The intent stays in the journal and holds the cards; unprepare, the next look at
            # the node or the next start undoes it.
            logger.exception("%s could not be undone yet", uid)

    def _renewed(self, held: Holding, owner: Owner) -> Holding:
        """What is held, with `owner` as it is now: a grant that is given out again."""
        if held.owner == owner:
            return held
        self._journal.write(record(Kind.PREPARED, owner, held.holds))
        return replace(held, owner=owner)

    def _exchange(self, held: Holding, wanted: Holds) -> Holds:
        """Take back what is held, as unprepare would have been asked to where it is not what is
        `wanted`; gives that with the names that it has besides."""
        if has_same_names(held.holds, wanted):
            self._take_back(held)
        elif not is_spent(held):
            self._give_back(renewing(held))
        return renewed(held, wanted)

    def _give_back(self, held: Holding, *, forget: bool = False) -> None:
        """Take back what the owner has, and what cannot be taken away let nobody wait for; `forget`
        its names, too."""
        self._begin_to_take_back(held)
        left = self._destroy(held)
        if left and not self._may_leave(held, left):
            raise _worst(left)
        self._forget(held, left, names=forget)
        for hold, error in left:
            logger.warning("%s is unprepared but for %s: %s", held.owner.title, hold.device, error)
            self._failures.left(held.owner, hold, error)
        kept = [hold for hold, _ in left]
        given_back = tuple(hold for hold in held.holds if hold not in kept)
        self._failures.unprepared(held.owner, given_back)

    def _may_leave(self, held: Holding, left: Left) -> bool:
        """At once what is on a card that is gone, or of which it is known that it fails; else
        after some tries, since a destroy that fails for a while is the common case."""
        if not isinstance(held.owner, ClaimRef):
            return False
        failing = remnant_cards(self._journal.snapshot())
        doubtful = {hold.card for hold, error in left if not isinstance(error, CardGone)} - failing
        if not any(map(self._is_there, doubtful)):
            return True
        return self._failures.unprepare_failed(held.owner)

    def _take_back(self, held: Holding) -> None:
        """All of it; raises the error of what cannot be taken away."""
        self._begin_to_take_back(held)
        self._clear(held)

    def _begin_to_take_back(self, held: Holding) -> None:
        if held.state is not State.UNPREPARING:
            self._journal.write(record(Kind.UNPREPARING, held.owner, held.holds))

    def _clear(self, held: Holding) -> None:
        left = self._destroy(held)
        if left:
            raise _worst(left)
        self._forget(held)

    def _destroy(self, held: Holding) -> Left:
        """The file first, so that no container starts with what is being taken away."""
        self._specs.remove(held.owner.uid)
        return self._work.destroy(held.holds)

    def _forget(self, held: Holding, left: Left = (), *, names: bool = False) -> None:
        """The record goes last, as it accounts for the rest; after one that accounts for what is
        left. It stays where the kubelet will ask again by `names` that it keeps."""
        out = self._work.leave(held.owner, held.cards - {hold.card for hold, _ in left})
        off = [card_record(CardKind.DRS_OFF, card) for card in out]
        end = record(Kind.FORGOTTEN, held.owner, ())
        if keeps_names(held.holds) and not names:
            end = record(Kind.UNPREPARING, held.owner, spent(held.holds))
        holds = tuple(replace(hold, formerly=()) for hold, _ in left)
        self._journal.commit(lambda now: [*remnant(now, held.owner, holds), end, *off])

    def _maintain(self, held: Holding, *, awaited: bool = False) -> Outcome:
        """Make again what is gone of a prepared claim, and its CDI file.

        A claim whose cards cannot be looked at is a failure only where it is `awaited`: else it
        may be one with which a container runs.
        """
        with self._failures.counted(held.owner, held.holds) if awaited else nullcontext():
            missing = self._missing(held)
            outcome = Outcome.AT_REST if missing else self._show(held)
        if missing:
            with self._failures.counted(held.owner, held.holds), self._telling_what_is_remade(held):
                cards = self._specs.read_cards(missing, held.holds)
                holds = self._work.remake(held.owner, held.holds, cards)
                self._show(replace(held, holds=holds))
            outcome = Outcome.REMADE
        if missing is not None:
            made = (hold.device for hold in held.holds if hold.card in missing)
            self._failures.succeeded(held.owner, made)
        return outcome

    @contextmanager
    def _telling_what_is_remade(self, held: Holding) -> Iterator[None]:
        """Also where it fails in the end: of several instances the first may have been made."""
        is_shown = self._specs.is_there(held.owner.uid)
        failure: GcuError | None = None
        try:
            yield
        except GcuError as error:
            failure = error
        if is_shown:
            for each in remade(held, self._journal.snapshot().holdings.get(held.owner.uid)):
                self._tell_remade(each)
        if failure is not None:
            raise failure

    def _missing(self, held: Holding) -> frozenset[PciAddress] | None:
        """The cards on which something is not as recorded; None where that cannot be told, and
        what runs with the claim goes on."""
        try:
            return self._work.missing(held.holds)
        except HardwareError:
            if not self._specs.is_there(held.owner.uid):
                raise
            logger.warning("%s stays unexamined", held.owner.title, exc_info=True)
            return None

    def _show(self, held: Holding) -> Outcome:
        return Outcome.RENDERED if self._specs.show(held) else Outcome.AT_REST

    def _is_there(self, card: PciAddress) -> bool:
        try:
            self._hardware.card(card)
        except HardwareError:
            return False
        return True


def _worst(left: Left) -> HardwareError:
    """That a card is gone is the least."""
    return next((error for _, error in left if not isinstance(error, CardGone)), left[0][1])
