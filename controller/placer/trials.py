"""Predictions are put to the test: they may be wrong, and no pod may wait for ever because of
that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.placer.candidates import ALL, Candidates
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object

FIRST: Final = 60.0
"""Seconds that a pod has been expected to be refused everywhere when the best node is tried."""
AGAIN: Final = 300.0
"""Seconds until the next one is."""


@dataclass(slots=True)
class _Trial:
    """The next is at the time `at`; of the last one, kube-scheduler has not judged the `node`."""

    at: float
    node: str = ""


class TrialPlacer(Placer):
    """Where nodes have devices, and kube-scheduler is expected to refuse each of them, the best one
    is tried all the same: after a minute, then every five minutes. One instance, one thread."""

    def __init__(
        self, *args: Any, clock: Callable[[], float], registry: CollectorRegistry, **rules: Any
    ) -> None:
        super().__init__(*args, **rules)
        self._clock = clock
        self._tried = specs.PREDICTIONS_TRIED.register(registry)
        self._trials: dict[str, _Trial] = {}  # by UID of the pod

    def place(self, asked: PodClaims, candidates: Candidates = ALL) -> Placed | Unplaced:
        """As `Placer.place`; `with_unfit` is chosen when a trial is due. Members of a group, for
        which nobody is preempted, are not put to the test: the others would fail with one."""
        outcome = super().place(asked, candidates)
        if not candidates.may_preempt:
            return outcome
        uid, now = uid_of(asked.pod), self._clock()
        trial = self._trials.get(uid)
        if trial is not None and trial.node:  # it was refused, or it would have been bound
            self._count(trial, right=True)
        if isinstance(outcome, Placed) or not outcome.is_prediction:
            self._trials.pop(uid, None)
            return outcome
        if trial is None:
            trial = self._trials[uid] = _Trial(now + FIRST)
        if now < trial.at:
            return outcome
        trial.at = now + AGAIN
        tried = super().place(asked, replace(candidates, with_unfit=True))
        if isinstance(tried, Placed):
            trial.node = tried.node
            return tried
        return outcome

    def next_trial(self, pod: Object) -> float | None:
        """When the best node is tried; None for a pod that waits for something else."""
        trial = self._trials.get(uid_of(pod))
        return None if trial is None else trial.at

    def on_pod(self, pod: Object, *, is_gone: bool) -> None:
        """The pod has changed, or is gone."""
        trial, node = self._trials.get(uid_of(pod)), pods.node_name(pod)
        if trial is None or not (is_gone or node):
            return
        if node and trial.node:
            self._count(trial, right=node != trial.node)
        del self._trials[uid_of(pod)]

    def _count(self, trial: _Trial, *, right: bool) -> None:
        self._tried.labels(str(right).lower()).inc()
        trial.node = ""
