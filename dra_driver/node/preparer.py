"""Prepares and unprepares the claims of one call: fetch, plan, visibility, then the manager."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.claims.claim_device import ClaimDevice, Prepared
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.identifiers import check_id
from dra_driver.model.names import pool_name
from dra_driver.node.cdi.spec import device_id
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep
from dra_driver.node.claim_reader import Pause, RetryingReader
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.claims.reallocation import is_reallocated
from dra_driver.node.locks import Locks
from dra_driver.node.plan import planned_devices
from dra_driver.node.ports import IsCancelled, ObjectReader
from dra_driver.node.results import attempt, in_parallel
from dra_driver.node.visibility.visible_cards import CallClaim, planned, resolve_visible_cards
from dra_driver.util.hooks import Clock

OnPrepared = Callable[[Object], None]
"""Called with a claim, as the API server has it, that is prepared and was not before. Neither
raises nor waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparer:
    """Prepares claims on one node. Thread-safe. `clock` (seconds) and `pause` are for reads that
    are repeated."""

    api: ObjectReader
    claim_manager: PreparedClaimManager
    journal: Journal
    locks: Locks
    node_name: str
    on_prepared: OnPrepared = lambda _claim: None
    clock: Clock = time.monotonic
    pause: Pause = time.sleep

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: IsCancelled | None = None
    ) -> dict[str, Prepared | GcuError]:
        """Prepare the claims of one pod. Returns the devices of each claim, or its error, by UID.

        A claim that is prepared already gets the same answer. A call that `is_cancelled` creates
        nothing: its claims may have been unprepared since. Raises JournalError where the journal
        cannot be read.
        """
        call = {ref.uid: CallClaim(ref) for ref in refs}
        with self.locks.calls(call):
            reader = RetryingReader(self.api, clock=self.clock, pause=self.pause)
            ledger = self.journal.snapshot()
            read = in_parallel({ref.uid: partial(_read, reader, ref) for ref in refs})
            for uid, claim in call.items():
                held = ledger.claims.get(uid)
                if held is not None and held.state is ClaimStep.PREPARE_COMPLETED:
                    claim.held = held
                claim.error = attempt(partial(self._plan, claim, read[uid]))
            resolve = partial(resolve_visible_cards, call, reader, ledger, self.node_name)
            error = attempt(resolve)
            for claim in planned(call).values():
                claim.error = error
            new = planned(call)
            prepared = in_parallel(
                {uid: partial(self._prepare, claim, is_cancelled) for uid, claim in call.items()},
                quick={
                    uid
                    for uid, claim in call.items()
                    if not ledger.changes_cards(claim.held.devices if claim.held else claim.devices)
                },
            )
        for uid, claim in new.items():
            if claim.object is not None and not isinstance(prepared[uid], GcuError):
                self.on_prepared(claim.object)
        return prepared

    def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, GcuError | None]:
        """Unprepare the claims. Returns None for each claim, or its error, by UID.

        Needs no API server: the claim may be deleted there. Raises JournalError where the journal
        cannot be read.
        """
        steps = {ref.uid: partial(self.claim_manager.unprepare, ref) for ref in refs}
        ledger = self.journal.snapshot() if len(refs) > 1 else Ledger()
        slow = {uid for uid, each in ledger.claims.items() if ledger.changes_cards(each.devices)}
        return in_parallel(steps, quick=steps.keys() - slow)

    def _plan(self, claim: CallClaim, read: Object | GcuError) -> None:
        """Plan the claim as it was `read`, unless it is prepared so. A prepared claim that cannot
        be read, or is deleted, stays: the kubelet may ask for a container that runs with it."""
        if claim.held is not None:
            if isinstance(read, GcuError) or not is_reallocated(read, claim.held):
                return
            claim.held = None
        if isinstance(read, GcuError):
            raise read
        claim.object = read
        claim.devices = planned_devices(
            read, claim.ref, pool=pool_name(self.node_name), share=self.claim_manager.share
        )

    def _prepare(self, claim: CallClaim, is_cancelled: IsCancelled | None) -> Prepared:
        if claim.error is not None:
            raise claim.error
        if claim.held is not None:
            devices = self.claim_manager.verify(claim.ref)
        else:
            devices = self.claim_manager.prepare(
                claim.ref, claim.devices, is_cancelled=is_cancelled
            )
        return tuple(
            ClaimDevice(
                request=device.request,
                pool=device.pool,
                device=device.device_name,
                cdi_ids=(device_id(claim.ref, device),),
                share_id=device.share_id,
            )
            for device in devices
        )


def _read(reader: ObjectReader, ref: ClaimRef) -> Object:
    check_id(ref.uid, "UID")
    try:
        return reader.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
    except NotFound as error:
        raise Refused(
            f"claim {ref} with UID {ref.uid} does not exist",
            remedy="delete the pod that was made for it",
        ) from error
