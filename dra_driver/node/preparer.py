"""Answers calls to prepare and unprepare claims: the node side's face to its fronts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dra_driver.kube.errors import NotFound
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.claim_device import ClaimDevice
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.identifiers import check_id
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.cdi.spec import Injection, device_id
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim, State
from dra_driver.node.claim_reader import Clock, Pause, RetryingReader
from dra_driver.node.claims.cancellation import Awaited, always
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.manager import Holds, PreparedClaimManager
from dra_driver.node.claims.reallocation import is_renewed
from dra_driver.node.claims.recreated import RecreatedInstance
from dra_driver.node.locks import Locks
from dra_driver.node.modes.driver import ModeDriver
from dra_driver.node.plan import holds_of
from dra_driver.node.ports import ClaimReader, Hardware
from dra_driver.node.results import ErrorsInto, in_parallel
from dra_driver.node.visibility.other_claims import others_to_read
from dra_driver.node.visibility.visible_cards import Call, resolve_visible_cards

logger = logging.getLogger(__name__)

Prepared = tuple[ClaimDevice, ...]


class Preparer:
    """Prepares claims on one node. Thread-safe; constructing it has no effect.

    `claim_manager` is what recovery works with, too.
    """

    def __init__(
        self,
        *,
        claims: ClaimReader,
        hardware: Hardware,
        journal: Journal,
        cdi: CdiDirectory,
        locks: Locks,
        node_name: str,
        injection: Injection,
        steps: Mapping[Mode, ModeDriver],
        failures: DeviceCircuitBreaker | None = None,
        on_recreated: Callable[[RecreatedInstance], None] = lambda _: None,
        clock: Clock = time.monotonic,
        pause: Pause = time.sleep,
    ) -> None:
        """`on_recreated` as for the `PreparedClaimManager`. `clock` and `pause` are for reads
        that are repeated."""
        self._claims = claims
        self._retrying = partial(RetryingReader, claims, clock=clock, pause=pause)
        self._locks = locks
        self._journal = journal
        self._node = node_name
        self._pool = pool_name(node_name)
        self.claim_manager = PreparedClaimManager(
            hardware=hardware,
            journal=journal,
            cdi=cdi,
            locks=locks,
            steps=steps,
            injection=injection,
            failures=failures or DeviceCircuitBreaker(),
            on_recreated=on_recreated,
        )

    def prepare(
        self, refs: Sequence[ClaimRef], *, awaited: Awaited = always
    ) -> dict[str, Prepared | GcuError]:
        """Prepare the claims of one pod; by UID the devices of each, or why there are none.

        The same claim may be asked for again and gets the same answer. Nothing new is given out
        for a call that is not `awaited` any more: what it asks for may have been unprepared since.
        Raises JournalError when the journal cannot be read.
        """
        call = Call({ref.uid: ref for ref in refs})
        prepared: dict[str, Prepared | GcuError] = {}
        with self._locks.calls(call.refs):
            reader = self._retrying()
            ledger = self._journal.snapshot()
            self._sort(call, ledger, reader)
            sighted = self._sight(call, ledger, reader)
            for uid in call.held:
                with ErrorsInto(call.failed, uid):
                    prepared[uid] = self._keep(call.refs[uid])
            slow: dict[str, Callable[[], Prepared]] = {}
            for uid, holds in sighted.items():
                if _is_slow(holds):
                    slow[uid] = partial(self._prepare, call.refs[uid], holds, awaited)
                    continue
                with ErrorsInto(call.failed, uid):
                    prepared[uid] = self._prepare(call.refs[uid], holds, awaited)
            return prepared | in_parallel(slow) | call.failed

    def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, GcuError | None]:
        """Take back what the claims have; by UID None, or why it is still prepared.

        Works without the API server, where the claim may be long gone. Raises JournalError when
        the journal cannot be read.
        """
        held = self._journal.snapshot().claims if len(refs) > 1 else {}
        failed: dict[str, GcuError] = {}
        slow: dict[str, Callable[[], None]] = {}
        for ref in refs:
            if ref.uid in held and _is_slow(held[ref.uid].devices):
                slow[ref.uid] = partial(self.claim_manager.unprepare, ref)
                continue
            with ErrorsInto(failed, ref.uid):
                self.claim_manager.unprepare(ref)
        unprepared: dict[str, GcuError | None] = dict.fromkeys(ref.uid for ref in refs)
        return unprepared | in_parallel(slow) | failed

    def _sort(self, call: Call, ledger: Ledger, reader: ClaimReader) -> None:
        """Read the claims, and sort them into those that are prepared and those to prepare."""
        held = {
            uid: holding
            for uid in call.refs
            if (holding := ledger.claims.get(uid)) and holding.state is State.PREPARE_COMPLETED
        }
        is_new = len(held) < len(call.refs)
        others = others_to_read(ledger, call.refs) if is_new else {}
        read = in_parallel(
            {uid: partial(_read, reader, ref) for uid, ref in [*call.refs.items(), *others.items()]}
        )
        call.others = {uid: read[uid] for uid in others}
        for uid, ref in call.refs.items():
            claim = read[uid]
            if uid in held and not _is_renewed(claim, held[uid]):
                call.held[uid] = held[uid]
            elif isinstance(claim, GcuError):
                call.failed[uid] = _explained(ref, claim)
            else:
                call.objects[uid] = claim
                with ErrorsInto(call.failed, uid):
                    call.planned[uid] = holds_of(claim, ref, pool=self._pool)

    def _sight(self, call: Call, ledger: Ledger, reader: ClaimReader) -> dict[str, Holds]:
        failed: dict[str, GcuError] = {}
        with ErrorsInto(failed, ""):
            return resolve_visible_cards(call, reader, ledger, self._node)
        call.failed |= dict.fromkeys(call.planned, failed[""])
        return {}

    def _prepare(self, ref: ClaimRef, holds: Holds, awaited: Awaited) -> Prepared:
        return _devices(ref, self.claim_manager.prepare(ref, holds, awaited=awaited))

    def _keep(self, ref: ClaimRef) -> Prepared:
        holds = self.claim_manager.verify(ref)
        if holds is None:
            raise Refused(f"claim {ref} is being unprepared", remedy="the kubelet retries")
        return _devices(ref, holds)


def _devices(ref: ClaimRef, holds: Holds) -> Prepared:
    return tuple(
        ClaimDevice(
            request=hold.request,
            pool=hold.pool,
            device=hold.device,
            cdi_ids=(device_id(ref, hold),),
            share_id=hold.share_id,
        )
        for hold in holds
    )


def _read(reader: ClaimReader, ref: ClaimRef) -> Object:
    check_id(ref.uid, "UID")
    return reader.get_claim(ref.namespace, ref.name)


def _explained(ref: ClaimRef, error: GcuError) -> GcuError:
    if isinstance(error, NotFound):
        return Refused(
            f"claim {ref} with UID {ref.uid} does not exist",
            remedy="delete the pod that was made for it",
        )
    return error


def _is_renewed(claim: Object | GcuError, held: PreparedClaim) -> bool:
    """Whether the claim has another allocation by now. Where that cannot be told, or the claim
    is gone, a container that runs with what is held may be what the kubelet asks for."""
    if isinstance(claim, GcuError):
        return False
    with ErrorsInto({}, held.owner.uid):
        return is_renewed(claim, held)
    return False


def _is_slow(holds: Holds) -> bool:
    """Whether it takes calls of efsmi, which cards can have at the same time."""
    return any(hold.mode is Mode.DRS for hold in holds)
