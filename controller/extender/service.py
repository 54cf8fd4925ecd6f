"""Answers kube-scheduler's calls: from bytes to bytes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from controller.allocator.order import Policy
from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.binder import Binder
from controller.extender.cache import ExtenderCache
from controller.extender.decide import filter_nodes, prioritize
from controller.extender.metrics import Metrics
from controller.extender.retry_queue import RetryQueue
from controller.extender.wire import (
    parse_bind,
    parse_preemption,
    parse_question,
    render_error,
    render_filtered,
    render_scores,
    render_victims,
)
from controller.https.server import Answer
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

# A pod's event about a call that failed has the URL, and nothing else that says who is meant.
PREFIX: Final = f"/{DRIVER}"


class Service:
    """`check` raises Refused as long as nothing may be answered: the view is not complete, or
    another replica decides."""

    def __init__(
        self,
        view: ExtenderCache,
        lock: threading.Lock,
        policy: Policy,
        *,
        binder: Binder,
        waiting: RetryQueue,
        refusals: AdmissionBackoff,
        metrics: Metrics,
        check: Callable[[], None],
    ) -> None:
        self._view = view
        self._lock = lock
        self._policy = policy
        self._binder = binder
        self._waiting = waiting
        self._refusals = refusals
        self._metrics = metrics
        self._check = check

    @property
    def answers(self) -> Mapping[str, Answer]:
        """By path."""
        verbs = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }
        return {f"{PREFIX}/{verb}": self._counted(verb, answer) for verb, answer in verbs.items()}

    def _counted(self, verb: str, answer: Answer) -> Answer:
        def call(body: bytes) -> bytes:
            outcome = "served"
            with self._metrics.seconds.labels(verb).time():
                try:
                    self._check()
                    return answer(body)
                except GcuError as error:
                    outcome = "refused" if isinstance(error, Refused) else "failed"
                    logger.info("%s: %s", verb, error)
                    # Scores have no place for an error; without them any node is as good.
                    return render_scores({}) if verb == "prioritize" else render_error(str(error))
                finally:
                    self._metrics.calls.labels(verb, outcome).inc()

        return call

    def _filter(self, body: bytes) -> bytes:
        asked = parse_question(body)
        kept_from = self._refusals.of(asked.pod, asked.nodes)
        nodes = [node for node in asked.nodes if node not in kept_from]
        with self._lock:
            found = filter_nodes(self._view, self._policy, asked.pod, nodes)
        if asked.nodes and not found.fit:
            self._waiting.add(asked.pod, asked.nodes)
        return render_filtered(replace(found, unfit={**found.unfit, **kept_from}))

    def _prioritize(self, body: bytes) -> bytes:
        asked = parse_question(body)
        with self._lock:
            return render_scores(prioritize(self._view, self._policy, asked.pod, asked.nodes))

    def _preempt(self, body: bytes) -> bytes:
        """Others may be ended where the pod has its cards already, as for cpu: that a node's counts
        would be enough then says nothing of its cards."""
        asked = parse_preemption(body)
        kept_from = self._refusals.of(asked.pod, asked.victims)
        nodes = [node for node in asked.victims if node not in kept_from]
        with self._lock:
            found = filter_nodes(self._view, self._policy, asked.pod, nodes)
        return render_victims({node: asked.victims[node] for node in found.fit})

    def _bind(self, body: bytes) -> bytes:
        call = parse_bind(body)
        self._binder.bind(call)
        self._waiting.drop(call.uid)
        logger.info("pod %s/%s is bound to %s", call.namespace, call.name, call.node)
        return render_error("")
