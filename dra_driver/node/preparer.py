"""Prepares and unprepares the claims of one call: fetch, plan, visibility, then the manager."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.claims.claim_device import ClaimDevice
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.identifiers import check_id
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.node.cdi.spec import device_id
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import PreparedDevices
from dra_driver.node.claim_reader import Clock, Pause, RetryingReader
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.claims.reallocation import is_reallocated
from dra_driver.node.locks import Locks
from dra_driver.node.plan import planned_devices
from dra_driver.node.ports import IsCancelled, ObjectReader
from dra_driver.node.results import ErrorsInto, in_parallel
from dra_driver.node.visibility.other_claims import others_to_read
from dra_driver.node.visibility.visible_cards import PrepareCall, resolve_visible_cards

logger = logging.getLogger(__name__)

Prepared = tuple[ClaimDevice, ...]

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
        call = PrepareCall({ref.uid: ref for ref in refs})
        prepared: dict[str, PreparedDevices | GcuError] = {}
        with self.locks.calls(call.refs):
            reader = RetryingReader(self.api, clock=self.clock, pause=self.pause)
            ledger = self.journal.snapshot()
            self._fetch_and_plan(call, ledger, reader)
            planned = self._resolve_visible_cards(call, ledger, reader)
            for uid in call.held:
                with ErrorsInto(call.failed, uid):
                    prepared[uid] = self.claim_manager.verify(call.refs[uid])
            slow: dict[str, Callable[[], PreparedDevices]] = {}
            for uid, devices in planned.items():
                ref = call.refs[uid]
                if _needs_efsmi(devices):
                    slow[uid] = partial(
                        self.claim_manager.prepare, ref, devices, is_cancelled=is_cancelled
                    )
                    continue
                with ErrorsInto(call.failed, uid):
                    prepared[uid] = self.claim_manager.prepare(
                        ref, devices, is_cancelled=is_cancelled
                    )
            prepared |= in_parallel(slow) | call.failed
        for uid in planned:
            if not isinstance(prepared[uid], GcuError):
                self.on_prepared(call.objects[uid])
        return {uid: _answer(call.refs[uid], result) for uid, result in prepared.items()}

    def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, GcuError | None]:
        """Unprepare the claims. Returns None for each claim, or its error, by UID.

        Needs no API server: the claim may be deleted there. Raises JournalError where the journal
        cannot be read.
        """
        held = self.journal.snapshot().claims if len(refs) > 1 else {}
        failed: dict[str, GcuError] = {}
        slow: dict[str, Callable[[], None]] = {}
        for ref in refs:
            if ref.uid in held and _needs_efsmi(held[ref.uid].devices):
                slow[ref.uid] = partial(self.claim_manager.unprepare, ref)
                continue
            with ErrorsInto(failed, ref.uid):
                self.claim_manager.unprepare(ref)
        unprepared: dict[str, GcuError | None] = dict.fromkeys(ref.uid for ref in refs)
        return unprepared | in_parallel(slow) | failed

    def _fetch_and_plan(self, call: PrepareCall, ledger: Ledger, reader: ObjectReader) -> None:
        """Read the claims, and sort them into `held`, `planned` and `failed`."""
        held = {
            uid: held
            for uid in call.refs
            if (held := ledger.claims.get(uid)) and held.state is ClaimState.PREPARE_COMPLETED
        }
        is_new = len(held) < len(call.refs)
        others = others_to_read(ledger, call.refs) if is_new else {}
        read = in_parallel(
            {uid: partial(_read, reader, ref) for uid, ref in [*call.refs.items(), *others.items()]}
        )
        call.others = {uid: read[uid] for uid in others}
        for uid, ref in call.refs.items():
            claim = read[uid]
            if uid in held and not _is_reallocated(claim, held[uid]):
                call.held[uid] = held[uid]
            elif isinstance(claim, GcuError):
                call.failed[uid] = _explained(ref, claim)
            else:
                call.objects[uid] = claim
                with ErrorsInto(call.failed, uid):
                    call.planned[uid] = planned_devices(
                        claim, ref, pool=pool_name(self.node_name), share=self.claim_manager.share
                    )

    def _resolve_visible_cards(
        self, call: PrepareCall, ledger: Ledger, reader: ObjectReader
    ) -> dict[str, PreparedDevices]:
        failed: dict[str, GcuError] = {}
        with ErrorsInto(failed, ""):
            return resolve_visible_cards(call, reader, ledger, self.node_name)
        call.failed |= dict.fromkeys(call.planned, failed[""])
        return {}


def _answer(ref: ClaimRef, result: PreparedDevices | GcuError) -> Prepared | GcuError:
    if isinstance(result, GcuError):
        return result
    return tuple(
        ClaimDevice(
            request=device.request,
            pool=device.pool,
            device=device.device_name,
            cdi_ids=(device_id(ref, device),),
            share_id=device.share_id,
        )
        for device in result
    )


def _read(reader: ObjectReader, ref: ClaimRef) -> Object:
    check_id(ref.uid, "UID")
    return reader.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)


def _explained(ref: ClaimRef, error: GcuError) -> GcuError:
    if isinstance(error, NotFound):
        return Refused(
            f"claim {ref} with UID {ref.uid} does not exist",
            remedy="delete the pod that was made for it",
        )
    return error


def _is_reallocated(claim: Object | GcuError, held: PreparedClaim) -> bool:
    """Whether the claim has another allocation by now. False where it cannot be read or is gone:
    the kubelet may ask for a container that runs with the prepared devices."""
    if isinstance(claim, GcuError):
        return False
    with ErrorsInto({}, held.owner.uid):
        return is_reallocated(claim, held)
    return False


def _needs_efsmi(devices: PreparedDevices) -> bool:
    """Whether the devices need calls of efsmi, which run for several cards at the same time."""
    return any(device.mode is Mode.DRS for device in devices)
