"""What an agent does before its first answer: make journal, CDI files and cards agree again.

It may run while another agent serves (rolling upgrade): every step takes the claim's locks, so it
finds claims at rest or truly abandoned. A running pod is never harmed: what is prepared stays
prepared, and a claim of which only a CDI file is left is taken back into the journal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.model.errors import GcuError, HardwareError
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.claims.restore import Outcome
from dra_driver.node.locks import Locks

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """What recovery did, for the log, metrics and events; by UID of a claim.

    A claim in `failed` stays as it was, and is tried again when the kubelet asks for it and at
    the next start.
    """

    recovered: dict[str, Outcome] = field(default_factory=dict)
    failed: dict[str, GcuError] = field(default_factory=dict)


class Recovery:
    """Runs after `Journal.open` and before the kubelet can call."""

    def __init__(
        self,
        *,
        claim_manager: PreparedClaimManager,
        journal: Journal,
        cdi: CdiDirectory,
        locks: Locks,
        silence: HungCardBreaker,
        hung: Callable[[], Mapping[str, HardwareError]] = dict,
    ) -> None:
        """`silence` is that of the keeper's cards, and `hung` gives who did not answer a moment
        ago: nothing is served before recovery is over, so a card that hangs is waited for once, and
        not for each claim, nor where the look at the cards has waited for it."""
        self._claim_manager = claim_manager
        self._journal = journal
        self._cdi = cdi
        self._locks = locks
        self._silence = silence
        self._hung = hung

    def run(self) -> Report:
        """Settle every claim in the journal, then every CDI file without one.

        Raises JournalError or CdiError only when journal or directory cannot be used at all;
        what fails for one claim is in the report.
        """
        report = Report()
        self._silence.begin(self._hung())
        try:
            for uid, held in self._journal.snapshot().claims.items():
                self._try(report, uid, partial(self._claim_manager.recover, held.owner))
            for uid in sorted(self._cdi.claims()[1]):
                self._try(report, uid, partial(self._sweep, uid))
            for uid in sorted(self._claim_manager.uids_without_record()):
                self._try(report, uid, partial(self._claim_manager.adopt_from_cdi, uid))
        finally:
            self._silence.end()
        return report

    def _sweep(self, uid: str) -> Outcome:
        with self._locks.claim(uid):
            self._cdi.remove_unfinished(uid)
        return Outcome.UNCHANGED

    def _try(self, report: Report, uid: str, step: Callable[[], Outcome]) -> None:
        try:
            with self._silence.step():
                outcome = step()
        except GcuError as error:
            logger.exception("claim %s could not be recovered", uid)
            report.failed[uid] = error
            return
        if outcome is not Outcome.UNCHANGED:
            logger.warning("claim %s: %s", uid, outcome)
            report.recovered[uid] = outcome
