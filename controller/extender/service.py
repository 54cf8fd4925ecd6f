"""Answers kube-scheduler's calls: from bytes to bytes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.allocator.packing.policy import Policy
from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.binder import Binder
from controller.extender.bypass import BypassReporter
from controller.extender.decide import filter_nodes, prioritize
from controller.extender.retry_queue import RetryQueue
from controller.extender.wire import (
    parse_bind,
    parse_filter,
    parse_preemption,
    render_error,
    render_filtered,
    render_scores,
    render_victims,
)
from controller.https.server import Answer
from dra_driver.model.errors import GcuError, InvalidValue, Refused
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

# A pod's event about a failed call has the URL, and nothing else that names this driver.
PREFIX: Final = f"/{DRIVER}"


class Metrics:
    """`certificate_ends` is Unix time by certificate: server, client, authority."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = specs.EXTENDER_CALL_SECONDS.register(registry)
        self.calls = specs.EXTENDER_CALLS.register(registry)
        self.refused_by_node = specs.EXTENDER_REFUSED_BY_NODE.register(registry)
        self.waiting = specs.EXTENDER_WAITING_PODS.register(registry)
        self.bypassed = specs.EXTENDER_BYPASSED_PODS.register(registry)
        self.certificate_ends = specs.EXTENDER_CERTIFICATE_END.register(registry)


@dataclass(frozen=True, slots=True)
class Service:
    """`check` raises Refused as long as no call may be answered: the cluster is not fully known, or
    another replica leads."""

    cluster: AnnotatedCluster
    lock: threading.Lock
    policy: Policy
    _: KW_ONLY
    binder: Binder
    retry_queue: RetryQueue
    admission_backoff: AdmissionBackoff
    metrics: Metrics
    bypass: BypassReporter
    check: Callable[[], None]

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
            outcome = "failed"
            with self.metrics.seconds.labels(verb).time():
                try:
                    self.check()
                    answered = answer(body)
                except GcuError as error:
                    outcome = "refused" if isinstance(error, Refused) else "failed"
                    logger.info("%s: %s", verb, error)
                    if isinstance(error, InvalidValue):
                        self.bypass.on_unreadable_call(verb, str(error))
                    # Scores have no field for an error; without scores all nodes are equal.
                    return render_scores({}) if verb == "prioritize" else render_error(str(error))
                else:
                    outcome = "served"
                    return answered
                finally:
                    self.metrics.calls.labels(verb, outcome).inc()

        return call

    def _filter(self, body: bytes) -> bytes:
        args = parse_filter(body)
        excluded = self.admission_backoff.excluded(args.pod, args.nodes)
        nodes = [node for node in args.nodes if node not in excluded]
        with self.lock:
            filtered = filter_nodes(self.cluster, self.policy, args.pod, nodes)
        if args.nodes and not filtered.fit:
            self.retry_queue.add(args.pod, args.nodes)
        return render_filtered(replace(filtered, unfit={**filtered.unfit, **excluded}))

    def _prioritize(self, body: bytes) -> bytes:
        args = parse_filter(body)
        with self.lock:
            return render_scores(prioritize(self.cluster, self.policy, args.pod, args.nodes))

    def _preempt(self, body: bytes) -> bytes:
        """Pods may be preempted only where this pod fits the cards already, as for cpu:
        kube-scheduler compares counts, which say nothing about single cards."""
        args = parse_preemption(body)
        excluded = self.admission_backoff.excluded(args.pod, args.victims)
        nodes = [node for node in args.victims if node not in excluded]
        with self.lock:
            filtered = filter_nodes(self.cluster, self.policy, args.pod, nodes)
        return render_victims({node: args.victims[node] for node in filtered.fit})

    def _bind(self, body: bytes) -> bytes:
        call = parse_bind(body)
        self.binder.bind(call)
        self.retry_queue.drop(call.uid)
        logger.info("pod %s/%s is bound to %s", call.namespace, call.name, call.node)
        return render_error("")
