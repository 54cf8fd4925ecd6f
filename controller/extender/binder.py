"""Binds pods: the cards are chosen under the lock; one write sets the node and the annotations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Final

from controller.allocator.packing.policy import Policy
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.decide import place
from controller.extender.gcushare.annotations import describe
from controller.extender.limit_request import concerns_us, parse_limits
from controller.extender.wire import BindArgs
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import KubeError, NotFound, TooManyRequests, Unavailable
from dra_driver.kube.resources import BINDINGS, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError, Refused

logger = logging.getLogger(__name__)

# A write that was not answered can still happen while the API server processes it: for its
# --request-timeout, 60 s by default.
_UNCERTAIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class _UncertainBind:
    """`notes` are the annotations that the pod gets with the write. At `due` the write has happened
    or never will. With `is_repeated` an earlier write of the same may happen as well."""

    call: BindArgs
    notes: Mapping[str, str]
    due: float
    is_repeated: bool = False


@dataclass(slots=True)
class Binder:
    """`cluster` is used under `lock`. Calls to `api` are made without it. `clock` is monotonic
    seconds, `now_ns` Unix time."""

    api: ObjectApi
    cluster: AnnotatedCluster
    lock: threading.Lock
    policy: Policy
    _: KW_ONLY
    clock: Callable[[], float]
    now_ns: Callable[[], int]
    _uncertain: dict[str, _UncertainBind] = field(default_factory=dict)

    def bind(self, call: BindArgs) -> None:
        """Bind the pod, and annotate it with the cards that it gets.

        Raises Refused where the node has no room (any more), or where an earlier call for another
        node may still be carried out, and KubeError where the API server did not bind the pod. A
        repeated call for a bound pod does nothing.
        """
        pod = self.api.get(PODS, call.name, namespace=call.namespace)
        self._check(pod, call)
        if pods.node_name(pod) == call.node:
            return
        uncertain = self._assume(pod, call)
        try:
            self.api.create(BINDINGS, _binding(call, uncertain.notes))
        except Unavailable:
            raise  # the pod may be bound nevertheless: see `resolve_uncertain`
        except TooManyRequests:
            self._count(uncertain, pod)  # the server has not begun
            raise
        except GcuError:
            self._resolve(uncertain)  # an earlier call may have bound it
            raise

    def has_uncertain(self) -> bool:
        """Whether a write may still be carried out, or was and no watch event has said so."""
        with self.lock:
            return any(map(self.cluster.is_assumed, self._uncertain))

    def resolve_uncertain(self) -> None:
        """Read the pods whose bind is uncertain, and that no watch event has confirmed in time."""
        with self.lock:
            self._uncertain = {
                uid: uncertain
                for uid, uncertain in self._uncertain.items()
                if self.cluster.is_assumed(uid)
            }
            uncertain_binds = list(self._uncertain.values())
        for uncertain in uncertain_binds:
            if uncertain.due <= self.clock():
                self._resolve(uncertain)

    def _check(self, pod: Object, call: BindArgs) -> None:
        title = f"pod {call.namespace}/{call.name}"
        if uid_of(pod) != call.uid:
            raise Refused(f"{title} is another one by now")
        if not concerns_us(pod):
            raise Refused(f"{title} has no limit for GCUs: its own scheduler binds it")
        if pods.is_deleting(pod):
            raise Refused(f"{title} is being deleted")
        if pods.node_name(pod) not in {"", call.node}:
            raise Refused(f"{title} is bound to {pods.node_name(pod)} already")

    def _assume(self, pod: Object, call: BindArgs) -> _UncertainBind:
        """Choose the pod's cards, the same ones as in an earlier call that may still be carried
        out. The notes are empty if the pod requests no GCU. Raises Refused."""
        due = self.clock() + _UNCERTAIN
        request = parse_limits(pod)
        if request is None:
            return _UncertainBind(call, {}, due)
        with self.lock:
            earlier = self._uncertain.get(call.uid) if self.cluster.is_assumed(call.uid) else None
            if earlier is not None:
                _check_same_node(earlier, call)
                uncertain = replace(earlier, due=due, is_repeated=True)
            else:
                bound_pod = place(self.cluster, self.policy, pod, request, call.node)
                self.cluster.assume(bound_pod)
                notes = describe(bound_pod, self.cluster.cards(call.node), self.now_ns())
                uncertain = _UncertainBind(call, notes, due)
            self._uncertain[call.uid] = uncertain
        return uncertain

    def _resolve(self, uncertain: _UncertainBind) -> None:
        """Read the pod, and count it as it is. If it cannot be read, it stays assumed."""
        call = uncertain.call
        try:
            pod: Object | None = self.api.get(PODS, call.name, namespace=call.namespace)
        except NotFound:
            pod = None
        except KubeError as error:
            logger.warning("pod %s/%s cannot be read: %s", call.namespace, call.name, error)
            return
        self._count(uncertain, pod)

    def _count(self, uncertain: _UncertainBind, pod: Object | None) -> None:
        """Count the pod as it was read; None if it is gone."""
        uid = uncertain.call.uid
        with self.lock:
            if pod is None or uid_of(pod) != uid:
                if self.cluster.is_assumed(uid):
                    self.cluster.drop_pod(uid)
            elif pods.node_name(pod):
                self.cluster.learn_pod(pod)
            elif self._uncertain.get(uid) is not uncertain:
                return  # another call binds the pod
            elif not uncertain.is_repeated or uncertain.due <= self.clock():
                self.cluster.forget(uid)


def _check_same_node(earlier: _UncertainBind, call: BindArgs) -> None:
    """Its cards could be another pod's by the time the earlier write is carried out."""
    if earlier.call.node != call.node:
        raise Refused(
            f"pod {call.namespace}/{call.name} may still become bound to {earlier.call.node}: the "
            "API server has not answered the first call",
            remedy=f"kube-scheduler tries again; it is known after {_UNCERTAIN:.0f} s",
        )


def _binding(call: BindArgs, annotations: Mapping[str, str]) -> Object:
    """A Binding (core/v1); its annotations become the pod's (upstream: setPodHostAndAnnotations),
    and it is refused where the pod has another UID or is bound."""
    return {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": {
            "namespace": call.namespace,
            "name": call.name,
            "uid": call.uid,
            "annotations": dict(annotations),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": call.node},
    }
