"""Binds pods: the cards are chosen under the lock; one write sets the node and the annotations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controller.allocator.packing.policy import Policy
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.cache import ExtenderCache
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
    call: BindArgs
    due: float


class Binder:
    """`cache` is used under `lock`. Calls to `api` are made without it. `clock` is monotonic
    seconds, `now_ns` Unix time."""

    def __init__(
        self,
        api: ObjectApi,
        cache: ExtenderCache,
        lock: threading.Lock,
        policy: Policy,
        *,
        clock: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self._api = api
        self._cache = cache
        self._lock = lock
        self._policy = policy
        self._clock = clock
        self._now_ns = now_ns
        self._uncertain: dict[str, _UncertainBind] = {}

    def bind(self, call: BindArgs) -> None:
        """Bind the pod, and annotate it with the cards that it gets.

        Raises Refused where the node has no room (any more), KubeError where the API server did
        not bind the pod. A repeated call for a bound pod does nothing.
        """
        pod = self._api.get(PODS, call.name, namespace=call.namespace)
        self._check(pod, call)
        if pods.node_name(pod) == call.node:
            return
        uncertain = _UncertainBind(call, self._clock() + _UNCERTAIN)
        notes = self._assume(pod, uncertain)
        try:
            self._api.create(BINDINGS, _binding(call, notes))
        except (Unavailable, TooManyRequests):
            raise  # the pod may be bound nevertheless: see `resolve_uncertain`
        except GcuError:
            self._resolve(uncertain)  # an earlier call may have bound it
            raise

    def resolve_uncertain(self) -> None:
        """Read the pods whose bind is uncertain, and that no watch event has confirmed in time."""
        with self._lock:
            self._uncertain = {
                uid: uncertain
                for uid, uncertain in self._uncertain.items()
                if self._cache.is_assumed(uid)
            }
            uncertain_binds = list(self._uncertain.values())
        for uncertain in uncertain_binds:
            if uncertain.due <= self._clock():
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

    def _assume(self, pod: Object, uncertain: _UncertainBind) -> dict[str, str]:
        """Choose the pod's cards. Returns its annotations; none if it requests no GCU. Raises
        Refused."""
        call = uncertain.call
        request = parse_limits(pod)
        if request is None:
            return {}
        with self._lock:
            bound_pod = place(self._cache, self._policy, pod, request, call.node)
            self._cache.assume(bound_pod)
            self._uncertain[call.uid] = uncertain
            cards = self._cache.cards(call.node)
        return dict(describe(bound_pod, cards, self._now_ns()))

    def _resolve(self, uncertain: _UncertainBind) -> None:
        """Read the pod, and count it as it is. If it cannot be read, it stays assumed."""
        call = uncertain.call
        try:
            pod: Object | None = self._api.get(PODS, call.name, namespace=call.namespace)
        except NotFound:
            pod = None
        except KubeError as error:
            logger.warning("pod %s/%s cannot be read: %s", call.namespace, call.name, error)
            return
        with self._lock:
            if pod is None or uid_of(pod) != call.uid:
                if self._cache.is_assumed(call.uid):
                    self._cache.drop_pod(call.uid)
            elif pods.node_name(pod):
                self._cache.learn_pod(pod)
            elif self._uncertain.get(call.uid) is uncertain:  # else another call binds the pod
                self._cache.forget(call.uid)


def _binding(call: BindArgs, annotations: dict[str, str]) -> Object:
    """A Binding (core/v1); its annotations become the pod's (upstream: setPodHostAndAnnotations),
    and it is refused where the pod has another UID or is bound."""
    return {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": {
            "namespace": call.namespace,
            "name": call.name,
            "uid": call.uid,
            "annotations": annotations,
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": call.node},
    }
