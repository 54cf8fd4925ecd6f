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
from dra_driver.model.owner import Orphan, Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.cdi.files import CdiSpecs, seen
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim, State
from dra_driver.node.checkpoint.records import (
    CardKind,
    Kind,
    PreparedDevice,
    Record,
    card_record,
    record,
)
from dra_driver.node.claims.cancellation import Awaited, always, check_awaited
from dra_driver.node.claims.device_ops import DeviceOps, Left
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.orphans import cards_with_orphans, orphan_records
from dra_driver.node.claims.reallocation import (
    has_same_names,
    is_in_force,
    is_spent,
    keeps_names,
    renewed,
    renewing,
    spent,
)
from dra_driver.node.claims.recreated import RecreatedInstance, recreated_instances
from dra_driver.node.locks import Locks
from dra_driver.node.modes.driver import ModeDriver
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)

Holds = tuple[PreparedDevice, ...]


class Outcome(StrEnum):
    """What it took to bring a claim to rest."""

    AT_REST = "at rest"
    UNDONE = "an unfinished prepare was undone"
    FINISHED = "what had begun was finished"
    REMADE = "its DRS instance was gone, and was made anew"
    RENDERED = "its CDI file was missing or outdated, and was written"
    ADOPTED = "taken into the journal from its CDI file"
    REMOVED = "its CDI file could not be read, and was removed"


class PreparedClaimManager:
    """Prepares, keeps and unprepares what owners hold of this node's cards."""

    def __init__(
        self,
        *,
        hardware: Hardware,
        journal: Journal,
        cdi: CdiDirectory,
        locks: Locks,
        steps: Mapping[Mode, ModeDriver],
        injection: Injection,
        failures: DeviceCircuitBreaker,
        on_recreated: Callable[[RecreatedInstance], None] = lambda _: None,
    ) -> None:
        """`on_recreated` is called for each instance that is lost under a claim whose containers
        may run, whoever noticed; it neither raises nor waits."""
        self._hardware = hardware
        self._journal = journal
        self._locks = locks
        self._failures = failures
        self._on_recreated = on_recreated
        self._work = DeviceOps(hardware, journal, steps)
        self._specs = CdiSpecs(hardware, cdi, injection)

    def attempt(self, owner: Owner, holds: Holds) -> AbstractContextManager[None]:
        """Around what comes before `prepare` in the same try: it has failed as one of its steps."""
        return self._failures.attempt(owner, holds)

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
                return held.devices
            check_awaited(owner, awaited)
            with self._failures.attempt(owner, holds):
                if held is not None:
                    holds = self._exchange(held, holds)
                holds = self._make(owner, holds)
            self._failures.succeeded(owner, (h.device for h in holds if not h.admin_access))
        return holds

    def verify(self, owner: Owner) -> Holds | None:
        """Make sure that what a prepared claim has is there, and its CDI file tells the truth.

        Gives its holds, or None if the claim is not prepared.
        """
        with self._own(owner.uid) as held:
            if held is None or held.state is not State.PREPARE_COMPLETED:
                return None
            self._maintain(self._recorded(held), awaited=True)
            return held.devices

    def unprepare(self, owner: Owner) -> None:
        """Take back what the owner has; nothing is a success, but for a CDI file to remove.

        What is on a card that is gone, or fails try after try, is taken away when the card allows
        it: a `Orphan` keeps the record that says so, but no pod waits for it. Where the journal
        has lost the record, the CDI file tells what there is to take back.
        """
        with self._own(owner.uid, recall=True) as held:
            if held is None:
                self._specs.remove(owner.uid)
                self._failures.unprepared(owner, ())
                return
            self._give_back(held, forget=True)

    def release(self, seen: PreparedClaim) -> bool:
        """Unprepare, as long as all is as it was `seen`; says whether it was.

        An owner that was given its devices again meanwhile is left alone: who decided that it
        needs them no longer did not know of that.
        """
        with self._own(seen.owner.uid) as held:
            if held != seen:
                return False
            self._take_back(held)
            self._failures.unprepared(held.owner, held.devices)
            return True

    def recover(self, owner: Owner, *, examine: bool = True) -> Outcome:
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
            if held.state is State.PREPARE_COMPLETED:
                if not held.records:
                    self._maintain(self._recorded(held))
                    return Outcome.FINISHED
                return self._maintain(held) if examine else self._show(held)
            self._take_back(held)
            if isinstance(held.owner, Orphan):
                self._failures.unprepared(held.owner, held.devices)
            return Outcome.UNDONE if held.state is State.PREPARE_STARTED else Outcome.FINISHED

    def adopt_from_cdi(self, uid: str) -> Outcome:
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

    def uids_without_record(self) -> frozenset[str]:
        """The UIDs of CDI files without a record. The files come first: a record comes before its
        file, and goes after it."""
        return self._specs.uids() - self._journal.snapshot().claims.keys()

    def disable_drs(self, card: PciAddress) -> None:
        """Switch a card of ours out of DRS mode of which nobody holds anything in it; raises the
        error of the step that failed."""
        with self._locks.cards([card]):
            ledger = self._journal.snapshot()
            if card in ledger.switched and not ledger.drs_holders_of(card):
                self._work.disable_drs(card)

    @contextmanager
    def _own(
        self, uid: str, wanted: Holds = (), *, recall: bool = False
    ) -> Iterator[PreparedClaim | None]:
        """Lock the owner and the cards that it has or shall have; gives what it has, with `recall`
        or after a loss also as its CDI file alone tells it, without `records` then."""
        with self._locks.claim(uid):
            # Only who has the owner's lock alters its holding, so it stays as read here.
            held = self._journal.snapshot().claims.get(uid)
            if held is None and (recall or not self._journal.is_complete):
                held = self._specs.read_claim(uid)
            elif held is not None and self._may_be_prepared(held):
                held = self._specs.read_claim(uid) or held
            cards = {hold.card for hold in wanted if not hold.admin_access}
            cards |= held.cards if held else set()
            with self._locks.cards(cards):
                yield held

    def _may_be_prepared(self, held: PreparedClaim) -> bool:
        """Whether the record may be lost by which an intent came to its end: its CDI file proves
        then that it did, and tells more than an intent can."""
        return held.state is State.PREPARE_STARTED and not self._journal.is_complete

    def _recorded(self, held: PreparedClaim) -> PreparedClaim:
        """What is held, with a record of it; raises Refused when another one holds its card."""
        if not held.records:
            self._write(Kind.PREPARE_COMPLETED, held.owner, held.devices)
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
        holds = self._work.snapshot(holds, cards)
        self._write(Kind.PREPARE_STARTED, owner, holds, self._work.totals(holds, cards))
        try:
            holds = self._work.create(owner, holds, cards)
            self._specs.write(owner, holds, cards)
            self._journal.write(record(Kind.PREPARE_COMPLETED, owner, holds))
        except Exception:
            self._undo(owner.uid)
            raise
        return holds

    def _undo(self, uid: str) -> None:
        try:
            self._clear(self._journal.snapshot().claims[uid])
        except GcuError:
            # The intent stays in the journal and holds the cards; unprepare, the next look at
            # the node or the next start undoes it.
            logger.exception("%s could not be undone yet", uid)

    def _renewed(self, held: PreparedClaim, owner: Owner) -> PreparedClaim:
        """What is held, with `owner` as it is now: a grant that is given out again."""
        if held.owner == owner:
            return held
        self._journal.write(record(Kind.PREPARE_COMPLETED, owner, held.devices))
        return replace(held, owner=owner)

    def _exchange(self, held: PreparedClaim, wanted: Holds) -> Holds:
        """Take back what is held, as unprepare would have been asked to where it is not what is
        `wanted`; gives that with the names that it has besides."""
        if has_same_names(held.devices, wanted):
            self._take_back(held)
        elif not is_spent(held):
            self._give_back(renewing(held))
        return renewed(held, wanted)

    def _give_back(self, held: PreparedClaim, *, forget: bool = False) -> None:
        """Take back what the owner has, and what cannot be taken away let nobody wait for; `forget`
        its names, too."""
        self._begin_to_take_back(held)
        left = self._destroy(held)
        if left and not self._may_leave(held, left):
            raise _worst(left)
        self._forget(held, left, names=forget)
        for hold, error in left:
            logger.warning("%s is unprepared but for %s: %s", held.owner.title, hold.device, error)
            self._failures.orphaned(held.owner, hold, error)
        kept = [hold for hold, _ in left]
        given_back = tuple(hold for hold in held.devices if hold not in kept)
        self._failures.unprepared(held.owner, given_back)

    def _may_leave(self, held: PreparedClaim, left: Left) -> bool:
        """At once what is on a card that is gone, or of which it is known that it fails; else
        after some tries, since a destroy that fails for a while is the common case."""
        if not isinstance(held.owner, ClaimRef):
            return False
        failing = cards_with_orphans(self._journal.snapshot())
        doubtful = {hold.card for hold, error in left if not isinstance(error, CardGone)} - failing
        if not any(map(self._is_there, doubtful)):
            return True
        return self._failures.unprepare_failed(held.owner)

    def _take_back(self, held: PreparedClaim) -> None:
        """All of it; raises the error of what cannot be taken away."""
        self._begin_to_take_back(held)
        self._clear(held)

    def _begin_to_take_back(self, held: PreparedClaim) -> None:
        if held.state is not State.UNPREPARE_STARTED:
            self._journal.write(record(Kind.UNPREPARE_STARTED, held.owner, held.devices))

    def _clear(self, held: PreparedClaim) -> None:
        left = self._destroy(held)
        if left:
            raise _worst(left)
        self._forget(held)

    def _destroy(self, held: PreparedClaim) -> Left:
        """The file first, so that no container starts with what is being taken away."""
        self._specs.remove(held.owner.uid)
        return self._work.destroy(held.devices)

    def _forget(self, held: PreparedClaim, left: Left = (), *, names: bool = False) -> None:
        """The record goes last, as it accounts for the rest; after one that accounts for what is
        left. It stays where the kubelet will ask again by `names` that it keeps."""
        out = self._work.leave_drs(held.owner, held.cards - {hold.card for hold, _ in left})
        off = [card_record(CardKind.DRS_OFF, card) for card in out]
        end = record(Kind.FORGOTTEN, held.owner, ())
        if keeps_names(held.devices) and not names:
            end = record(Kind.UNPREPARE_STARTED, held.owner, spent(held.devices))
        holds = tuple(replace(hold, cdi_aliases=()) for hold, _ in left)
        self._journal.commit(lambda now: [*orphan_records(now, held.owner, holds), end, *off])

    def _maintain(self, held: PreparedClaim, *, awaited: bool = False) -> Outcome:
        """Make again what is gone of a prepared claim, and its CDI file.

        A claim whose cards cannot be looked at is a failure only where it is `awaited`: else it
        may be one with which a container runs.
        """
        with self._failures.attempt(held.owner, held.devices) if awaited else nullcontext():
            missing = self._missing(held)
            outcome = Outcome.AT_REST if missing else self._show(held)
        if missing:
            with self._failures.attempt(held.owner, held.devices), self._reporting_recreated(held):
                cards = self._specs.read_cards(missing, held.devices)
                holds = self._work.recreate(held.owner, held.devices, cards)
                self._show(replace(held, devices=holds))
            outcome = Outcome.REMADE
        if missing is not None:
            made = (hold.device for hold in held.devices if hold.card in missing)
            self._failures.succeeded(held.owner, made)
        return outcome

    @contextmanager
    def _reporting_recreated(self, held: PreparedClaim) -> Iterator[None]:
        """Also where it fails in the end: of several instances the first may have been made."""
        is_shown = self._specs.is_there(held.owner.uid)
        failure: GcuError | None = None
        try:
            yield
        except GcuError as error:
            failure = error
        if is_shown:
            for each in recreated_instances(
                held, self._journal.snapshot().claims.get(held.owner.uid)
            ):
                self._on_recreated(each)
        if failure is not None:
            raise failure

    def _missing(self, held: PreparedClaim) -> frozenset[PciAddress] | None:
        """The cards on which something is not as recorded; None where that cannot be told, and
        what runs with the claim goes on."""
        try:
            return self._work.missing(held.devices)
        except HardwareError:
            if not self._specs.is_there(held.owner.uid):
                raise
            logger.warning("%s stays unexamined", held.owner.title, exc_info=True)
            return None

    def _show(self, held: PreparedClaim) -> Outcome:
        return Outcome.RENDERED if self._specs.refresh(held) else Outcome.AT_REST

    def _is_there(self, card: PciAddress) -> bool:
        try:
            self._hardware.card(card)
        except HardwareError:
            return False
        return True


def _worst(left: Left) -> HardwareError:
    """That a card is gone is the least."""
    return next((error for _, error in left if not isinstance(error, CardGone)), left[0][1])
