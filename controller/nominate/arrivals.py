"""How new pods come: with our scheduling gate, or without it because API servers do not reach the
webhook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import Counter

from controller.cache import pods
from controller.cache.keys import Key, uid_of
from controller.cache.nodes import is_tied
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object


@dataclass(slots=True)
class _Arrival:
    """Of the pod with that UID, which is bound to no node."""

    uid: str
    was_gated: bool
    is_counted: bool = False


class Arrivals:
    """Counts each new pod that wants devices once, by whether it came with the gate. A pod that the
    webhook leaves alone does not count. One instance, one thread."""

    def __init__(self, counter: Counter) -> None:
        """`counter` has the label ``gated``."""
        self._counter = counter
        self._arrivals: dict[Key, _Arrival] = {}

    def begin(self, known: Iterable[Object]) -> None:
        """This replica leads. A former leader may have lifted the gates of the `known` pods, so
        these pods never count."""
        self._arrivals = {
            pods.key_of(pod): _Arrival(uid_of(pod), was_gated=False, is_counted=True)
            for pod in known
        }

    def see(self, pod: Object) -> None:
        """The pod, which is not bound, has a step: the first one knows whether it was gated."""
        key = pods.key_of(pod)
        arrival = self._arrivals.get(key)
        if arrival is None or arrival.uid != uid_of(pod):
            self._arrivals[key] = _Arrival(uid_of(pod), pods.has_our_gate(pod))

    def count(self, asked: PodClaims) -> None:
        """The pod has claims without devices."""
        arrival = self._arrivals.get(pods.key_of(asked.pod))
        if arrival is None or arrival.is_counted:
            return
        requests = (
            each.device_request for claim in asked.wanted for each in claim.exact_requests()
        )
        if is_tied(asked.pod["spec"]) or all(request.admin_access for request in requests):
            return
        arrival.is_counted = True
        self._counter.labels(str(arrival.was_gated).lower()).inc()

    def forget(self, key: Key) -> None:
        """The pod is bound, or is gone."""
        self._arrivals.pop(key, None)
