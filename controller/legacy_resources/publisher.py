"""Writes the decision into the ServiceAccount, and reports it."""

from __future__ import annotations

import logging
from typing import Final

from controller.leaderelection.fence import Fence
from controller.legacy_resources.decision import DecisionRule, LimitsDecision
from controller.legacy_resources.decision_cache import DecisionCache, annotations_of
from controller.legacy_resources.foreign_resources import ForeignResources
from controller.own_pod import OwnPod
from dra_driver.kube.api import Api, Change
from dra_driver.kube.errors import KubeError
from dra_driver.kube.events import EventType
from dra_driver.kube.resources import SERVICE_ACCOUNTS
from dra_driver.util.background import Background
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

TRANSLATED: Final = "GcuLimitsBecomeClaims"
LEFT: Final = "GcuLimitsLeftAlone"

_EVERY: Final = 1.0
_RETRY: Final = 10.0  # seconds after a write that failed


class DecisionPublisher(Background):
    """While this replica leads, keeps the ServiceAccount `name` of `namespace` as `rule` decides by
    the resources that nodes offer. Constructing it has no effect. `foreign` and `cache` are fed by
    watches."""

    def __init__(
        self,
        api: Api,
        fence: Fence,
        own_pod: OwnPod,
        *,
        namespace: str,
        name: str,
        foreign: ForeignResources,
        cache: DecisionCache,
        rule: DecisionRule,
        clock: Clock,
    ) -> None:
        super().__init__("limits-decision")
        self._api = api
        self._fence = fence
        self._own_pod = own_pod
        self._namespace = namespace
        self._name = name
        self._foreign = foreign
        self._cache = cache
        self._rule = rule
        self._clock = clock
        self._retry_at = float("-inf")

    def run(self) -> None:
        while not self._wait(_EVERY):
            self.run_once()

    def run_once(self) -> None:
        """Decide, and write what changed. Never raises KubeError: it tries again later."""
        if not self._fence.is_open():
            self._rule.forget()
            return
        foreign = self._foreign.by_node()
        if foreign is None or not self._cache.is_synced or self._clock() < self._retry_at:
            return
        before = self._cache.translates
        decision = self._rule.decide(foreign, before)
        if decision is None or annotations_of(decision) == self._cache.annotations:
            return
        try:
            written = self._api.patch(
                SERVICE_ACCOUNTS,
                self._name,
                {"metadata": {"annotations": dict(annotations_of(decision))}},
                namespace=self._namespace,
            )
        except KubeError as error:
            self._retry_at = self._clock() + _RETRY
            logger.warning(
                "ServiceAccount %s/%s cannot be written, and limits of new pods are treated as "
                "before: %s. If it is missing, `helm upgrade` creates it",
                self._namespace,
                self._name,
                error,
            )
            return
        self._cache.on_event(Change.MODIFIED, written)
        if decision.translate is not before:
            self._report(decision)

    def _report(self, decision: LimitsDecision) -> None:
        logger.info("%s", decision.note)
        reason, kind = (
            (TRANSLATED, EventType.NORMAL) if decision.translate else (LEFT, EventType.WARNING)
        )
        self._own_pod.report(reason, decision.note, "DecideLimits", kind)
