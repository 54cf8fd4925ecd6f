"""Binds pods: the card is chosen under the lock, and pod, node and hint are written at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controller.allocator.order import Policy
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.annotations import describe
from controller.extender.cache import ExtenderCache
from controller.extender.decide import place
from controller.extender.limit_request import asked_of, concerns_us
from controller.extender.wire import Bind
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import KubeError, NotFound, TooManyRequests, Unavailable
from dra_driver.kube.resources import BINDINGS, PODS
from dra_driver.model.claim import Object
from dra_driver.model.errors import GcuError, Refused

logger = logging.getLogger(__name__)

# A write that was not answered can still happen as long as the API server works on it:
# its --request-timeout, by default.
_UNCERTAIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Doubt:
    call: Bind
    due: float


class Binder:
    """`view` is used under `lock`, calls to `api` are made without it. `clock` is monotonic
    seconds, `now_ns` Unix time."""

    def __init__(
        self,
        api: ObjectApi,
        view: ExtenderCache,
        lock: threading.Lock,
        policy: Policy,
        *,
        clock: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self._api = api
        self._view = view
        self._lock = lock
        self._policy = policy
        self._clock = clock
        self._now_ns = now_ns
        self._doubts: dict[str, _Doubt] = {}

    def bind(self, call: Bind) -> None:
        """Bind the pod, with the cards of the node that it is to have.

        Raises Refused where the node cannot take it (any more), KubeError where the API server did
        not bind it. What was asked for before and done is done.
        """
        pod = self._api.get(PODS, call.name, namespace=call.namespace)
        self._check(pod, call)
        if pods.node_name(pod) == call.node:
            return
        doubt = _Doubt(call, self._clock() + _UNCERTAIN)
        notes = self._assume(pod, doubt)
        try:
            self._api.create(BINDINGS, _binding(call, notes))
        except (Unavailable, TooManyRequests):
            raise  # perhaps it is bound all the same: see `settle`
        except GcuError:
            self._find_out(doubt)  # an earlier call may have bound it, for which nobody waits
            raise

    def settle(self) -> None:
        """Find out what became of pods that the watch has not told of in time."""
        with self._lock:
            self._doubts = {
                uid: doubt for uid, doubt in self._doubts.items() if self._view.is_assumed(uid)
            }
            due = [each for each in self._doubts.values() if each.due <= self._clock()]
        for doubt in due:
            self._find_out(doubt)

    def _check(self, pod: Object, call: Bind) -> None:
        who = f"pod {call.namespace}/{call.name}"
        if uid_of(pod) != call.uid:
            raise Refused(f"{who} is another one by now")
        if not concerns_us(pod):
            raise Refused(f"{who} has no limit for GCUs: its own scheduler binds it")
        if pods.is_deleting(pod):
            raise Refused(f"{who} is being deleted")
        if pods.node_name(pod) not in {"", call.node}:
            raise Refused(f"{who} is bound to {pods.node_name(pod)} already")

    def _assume(self, pod: Object, doubt: _Doubt) -> dict[str, str]:
        call = doubt.call
        asked = asked_of(pod)
        if asked is None:
            return {}
        with self._lock:
            tenant = place(self._view, self._policy, pod, asked, call.node)
            self._view.assume(tenant, call.node)
            self._doubts[call.uid] = doubt
            cards = self._view.cards(call.node)
        return dict(describe(tenant, cards, self._now_ns()))

    def _find_out(self, doubt: _Doubt) -> None:
        call = doubt.call
        try:
            pod = self._api.get(PODS, call.name, namespace=call.namespace)
        except NotFound:
            self._gone(call.uid)
        except KubeError as error:
            logger.warning("what became of %s/%s: %s", call.namespace, call.name, error)
        else:
            self._found(pod, doubt)

    def _gone(self, uid: str) -> None:
        with self._lock:
            if self._view.is_assumed(uid):
                self._view.drop_pod(uid)

    def _found(self, pod: Object, doubt: _Doubt) -> None:
        uid = doubt.call.uid
        if uid_of(pod) != uid:
            self._gone(uid)
            return
        with self._lock:
            if pods.node_name(pod):
                self._view.learn_pod(pod)
            elif self._doubts.get(uid) is doubt:  # else it is being bound once more
                self._view.forget(uid)


def _binding(call: Bind, annotations: dict[str, str]) -> Object:
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
