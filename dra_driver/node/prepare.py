"""Answers calls to prepare and unprepare claims: the node side's face to its fronts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, ParamSpec, TypeVar

from dra_driver.kube.errors import NotFound
from dra_driver.model.claim import ClaimRef, Object
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.identifiers import check_id
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.model.prepared import PreparedDevice
from dra_driver.node.awaited import Awaited, always
from dra_driver.node.cdi import Injection, device_id
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.failures import Failures
from dra_driver.node.journal import Journal
from dra_driver.node.keeper import Holds, Keeper
from dra_driver.node.ledger import Holding, Ledger, State
from dra_driver.node.locks import Locks
from dra_driver.node.lost import Lost
from dra_driver.node.plan import holds_of
from dra_driver.node.ports import ClaimReader, Hardware
from dra_driver.node.remade import Remade
from dra_driver.node.renewal import is_renewed
from dra_driver.node.steps import ModeSteps, WholeCard
from dra_driver.node.usage import Call, with_sight

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
Prepared = tuple[PreparedDevice, ...]

_MOST_AT_ONCE: Final = 16

WHOLE_ONLY: Final[Mapping[Mode, ModeSteps]] = MappingProxyType({Mode.WHOLE: WholeCard()})


class Preparer:
    """Prepares claims on one node. Thread-safe; constructing it has no effect.

    `keeper` is what recovery works with, too.
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
        steps: Mapping[Mode, ModeSteps] = WHOLE_ONLY,
        failures: Failures | None = None,
        lost: Lost | None = None,
        remade: Callable[[Remade], None] = lambda _: None,
    ) -> None:
        """`lost` finds what claims have of which nothing on the node tells. `remade` as for the
        `Keeper`."""
        self._lost = lost
        self._claims = claims
        self._journal = journal
        self._node = node_name
        self._pool = pool_name(node_name)
        self._modes = frozenset(steps)
        self.keeper = Keeper(
            hardware=hardware,
            journal=journal,
            cdi=cdi,
            locks=locks,
            steps=steps,
            injection=injection,
            failures=failures or Failures(),
            remade=remade,
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
        ledger = self._journal.snapshot()
        answers: dict[str, Prepared | GcuError] = {}
        for uid, ref in call.refs.items():
            held = ledger.holdings.get(uid)
            if held is None or held.state is not State.PREPARED or self._is_renewed(ref, held):
                self._plan(call, ref)
            else:
                call.held[uid] = held
        sighted = self._sight(call, ledger)
        prepare = {
            uid: partial(self._prepare, call.refs[uid], sighted[uid], call.objects[uid], awaited)
            for uid in sighted
        }
        slow = {uid for uid, holds in sighted.items() if _is_slow(holds)}
        answers |= _attempt_all(prepare, slow)
        for uid in call.held:
            answers[uid] = _attempt(self._keep, call.refs[uid])
        return answers | call.failed

    def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, GcuError | None]:
        """Take back what the claims have; by UID None, or why it is still prepared.

        Works without the API server, where the claim may be long gone. Raises JournalError when
        the journal cannot be read.
        """
        if self._lost is not None and self._lost.suspected:
            for ref in refs:
                self._take_in(ref, self._lost)
        held = self._journal.snapshot().holdings if len(refs) > 1 else {}
        slow = {uid for uid, holding in held.items() if _is_slow(holding.holds)}
        return _attempt_all({ref.uid: partial(self.keeper.unprepare, ref) for ref in refs}, slow)

    def _is_renewed(self, ref: ClaimRef, held: Holding) -> bool:
        """Whether the claim has another allocation by now. Where that cannot be told, or the claim
        is gone, a container that runs with what is held may be what the kubelet asks for."""
        claim = _attempt(self._claims.get_claim, ref.namespace, ref.name)
        return not isinstance(claim, GcuError) and _attempt(is_renewed, claim, held) is True

    def _plan(self, call: Call, ref: ClaimRef) -> None:
        planned = _attempt(self._read, call, ref)
        if isinstance(planned, GcuError):
            call.failed[ref.uid] = planned
        else:
            call.planned[ref.uid] = planned

    def _read(self, call: Call, ref: ClaimRef) -> Holds:
        check_id(ref.uid, "UID")
        try:
            claim = self._claims.get_claim(ref.namespace, ref.name)
        except NotFound as error:
            raise Refused(
                f"claim {ref} with UID {ref.uid} does not exist",
                remedy="delete the pod that was made for it",
            ) from error
        call.objects[ref.uid] = claim
        return holds_of(claim, ref, pool=self._pool, modes=self._modes)

    def _sight(self, call: Call, ledger: Ledger) -> dict[str, Holds]:
        sighted = _attempt(with_sight, call, self._claims, ledger, self._node)
        if isinstance(sighted, GcuError):
            call.failed |= dict.fromkeys(call.planned, sighted)
            return {}
        return sighted

    def _prepare(self, ref: ClaimRef, holds: Holds, claim: Object, awaited: Awaited) -> Prepared:
        with self.keeper.trying(ref, holds):
            found = None if self._lost is None else self._lost.found(claim, holds)
        if found is not None:
            self._adopt(ref, found, awaited)
            return self._keep(ref)
        return _devices(ref, self.keeper.prepare(ref, holds, awaited=awaited))

    def _take_in(self, ref: ClaimRef, lost: Lost) -> None:
        """Learn from the claim what it has, to take it back. It may be gone, and the API server
        away: then there is nothing to learn, and nothing to wait for."""
        if ref.uid in self._journal.snapshot().holdings:
            return
        try:
            claim = self._claims.get_claim(ref.namespace, ref.name)
            holds = holds_of(claim, ref, pool=self._pool, modes=self._modes)
            found = lost.found(claim, tuple(replace(each, sees=(each.card,)) for each in holds))
            if found is not None:
                self._adopt(ref, found)
        except GcuError as error:
            logger.warning("it is not known whether claim %s has an instance: %s", ref, error)

    def _adopt(self, ref: ClaimRef, found: Holds, awaited: Awaited = always) -> None:
        made = ", ".join(str(hold.instance) for hold in found if hold.instance is not None)
        logger.warning("claim %s, which was lost, has DRS instance %s", ref, made)
        self.keeper.adopt(ref, found, awaited=awaited)

    def _keep(self, ref: ClaimRef) -> Prepared:
        holds = self.keeper.keep(ref)
        if holds is None:
            raise Refused(f"claim {ref} is being unprepared", remedy="the kubelet retries")
        return _devices(ref, holds)


def _devices(ref: ClaimRef, holds: Holds) -> Prepared:
    return tuple(
        PreparedDevice(
            request=hold.request,
            pool=hold.pool,
            device=hold.device,
            cdi_ids=(device_id(ref, hold),),
            share_id=hold.share_id,
        )
        for hold in holds
    )


def _is_slow(holds: Holds) -> bool:
    """Whether it takes calls of efsmi, which cards can have at the same time."""
    return any(hold.mode is Mode.DRS for hold in holds)


def _attempt_all(
    steps: Mapping[str, Callable[[], R]], slow: Collection[str]
) -> dict[str, R | GcuError]:
    """What each step gives, or its error; those that are `slow` beside each other."""
    apart = [key for key in steps if key in slow]
    if len(apart) < 2:
        return {key: _attempt(step) for key, step in steps.items()}
    with ThreadPoolExecutor(min(len(apart), _MOST_AT_ONCE), thread_name_prefix="claim") as pool:
        # The context has the call's identifier, which stands in each line of the log.
        begun = {
            key: pool.submit(copy_context().run, partial(_attempt, steps[key])) for key in apart
        }
        done = {key: _attempt(step) for key, step in steps.items() if key not in begun}
        return done | {key: future.result() for key, future in begun.items()}


def _attempt(step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | GcuError:
    """What `step` gives, or the error that it raises, which is the claim's result."""
    try:
        return step(*args, **kwargs)
    except GcuError as error:
        return error
    except Exception as error:
        logger.exception("internal error")
        return GcuError(
            f"internal error of the agent: {error!r}",
            remedy="report it with the stack trace in its log",
        )
