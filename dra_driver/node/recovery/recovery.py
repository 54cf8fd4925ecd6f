"""Makes journal, CDI files and cards agree again, before the agent answers its first call.

Another agent may serve meanwhile (rolling update): each step takes the claim's locks, so a claim is
either complete or abandoned by a killed agent. No running pod is harmed: prepared claims stay
prepared, and a claim with only a CDI file is recorded in the journal again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from dra_driver.model.errors import GcuError
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.claims.restore import Outcome
from dra_driver.node.locks import Locks

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """What recovery did, by UID of a claim.

    A claim in `failed` stays as it was. The next reconciliation, the next call of the kubelet and
    the next start try it again.
    """

    recovered: dict[str, Outcome] = field(default_factory=dict)
    failed: dict[str, GcuError] = field(default_factory=dict)

    @property
    def adopted(self) -> int:
        """How many claims were taken into the journal from their CDI files."""
        return list(self.recovered.values()).count(Outcome.ADOPTED)

    def recover(self, uid: str, step: Callable[[], Outcome]) -> None:
        """Run the step of one claim, and add what it did."""
        try:
            outcome = step()
        except GcuError as error:
            logger.warning("claim %s could not be recovered: %s", uid, error)
            self.failed[uid] = error
            return
        if outcome is not Outcome.UNCHANGED:
            logger.warning("claim %s: %s", uid, outcome)
            self.recovered[uid] = outcome

    def adopt_unrecorded(self, claim_manager: PreparedClaimManager) -> None:
        """Record the claims that have a CDI file and no record, because the journal lost it."""
        for uid in sorted(claim_manager.uids_without_record()):
            self.recover(uid, partial(claim_manager.adopt_from_cdi, uid))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Runs after `Journal.open` and before the kubelet can call.

    No call is answered before recovery has ended. It waits for a card that hangs once, and not for
    each of its claims (`dra_driver.hardware.breaker`).
    """

    claim_manager: PreparedClaimManager
    journal: Journal
    cdi: CdiDirectory
    locks: Locks

    def run(self) -> Report:
        """Recover every claim of the journal, then every CDI file without a record.

        Raises JournalError or CdiError where journal or directory cannot be used at all; a failure
        of one claim is in the report.
        """
        report = Report()
        for uid, held in self.journal.snapshot().claims.items():
            report.recover(uid, partial(self.claim_manager.recover, held.owner))
        for uid in sorted(self.cdi.claims()[1]):
            report.recover(uid, partial(self._remove_unfinished, uid))
        report.adopt_unrecorded(self.claim_manager)
        return report

    def _remove_unfinished(self, uid: str) -> Outcome:
        with self.locks.claim(uid):
            self.cdi.remove_unfinished(uid)
        return Outcome.UNCHANGED
