"""Leader election by a Lease (coordination.k8s.io/v1), as client-go does it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final

from controller.leaderelection.fence import Fence, boottime
from dra_driver.kube.api import Api
from dra_driver.kube.errors import (
    AlreadyExists,
    Conflict,
    KubeError,
    NotFound,
    TooManyRequests,
)
from dra_driver.kube.resources import LEASES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, ANNOTATION_ALLOCATOR
from dra_driver.util.background import Background

logger = logging.getLogger(__name__)

LONGEST: Final = 600.0
"""Seconds that a lease may last. No replica waits longer, whatever the Lease says: a stolen token
can write anything into it."""
_LATE: Final = 5.0
"""Seconds for an attempt after which connections may be dead: one that a read found dead is given
up after ten (`kube/http/connections.py`)."""
_RETURNS_AFTER: Final = 30.0
"""Least seconds between two calls of `on_server_back`. Otherwise a slow server would have all
watches opened again with each late answer."""
_MOST_TRANSITIONS: Final = 2**31 - 1  # coordination.k8s.io/v1, an int32


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. Other replicas wait `duration` after the last renewal that they saw. The leader
    writes until `renew_deadline` after the start of its last renewal; it renews every `retry`."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0


class LeaderElector(Background):
    """Acquires and renews the lease in a thread of its own; opens and closes the fence.

    A term's name is ``leaseTransitions`` and the start of the Lease's UID: a Lease that was deleted
    and created again repeats no name. A process begins a term of its own, even under the identity
    of the process before it.

    Clocks of two machines are never compared: the lease of another holder ends `duration` seconds
    after this process saw it change. `on_leading` is called when the lease was won.
    `on_server_back` is called when the server has answered after it was away, but not twice in
    `_RETURNS_AFTER`: no other part asks it so often.

    An annotation of the Lease says that kube-scheduler allocates (ADR 27). It is written in terms
    that `fenced_term` returns, in which no write of a previous leader can arrive any more. A leader
    without `fenced_term` allocates, and removes the annotation when it acquires the lease.
    """

    def __init__(
        self,
        api: Api,
        fence: Fence,
        *,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes,
        on_leading: Callable[[], None],
        on_server_back: Callable[[], None],
        fenced_term: Callable[[], str] | None = None,
        now: Callable[[], datetime],
        clock: Callable[[], float] = boottime,
    ) -> None:
        super().__init__("leader")
        self._api = api
        self._fence = fence
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times
        self._on_leading = on_leading
        self._on_server_back = on_server_back
        self._fenced_term = fenced_term
        self._now = now
        self._clock = clock
        self._observed: Object | None = None
        self._observed_at = 0.0
        self._has_led = False
        self._was_away = False
        self._returned_at = float("-inf")
        self._give_back = True

    def stop(self, timeout: float, *, give_back: bool = True) -> None:
        """Renew no more, and close the fence. With `give_back` the next leader need not wait until
        the lease expires."""
        self._give_back = give_back
        super().stop(timeout)
        self._fence.close()

    def has_leader(self) -> bool:
        """Whether a replica, this one or another, renewed the lease when it was due, as far as this
        one has looked; safe for any thread."""
        lease, seen_at = self._observed, self._observed_at
        if lease is None or not lease["spec"].get("holderIdentity"):
            return False
        return self._clock() - seen_at <= 2 * self._times.retry + 1.0

    def run(self) -> None:
        while not self._stopped.is_set():
            self.step()
            self._wait(self._times.retry)
        # In this thread, because a server that does not answer must not delay `stop`.
        if self._give_back:
            self.release()

    def step(self) -> None:
        """One attempt to acquire or renew. Raises no KubeError: the fence closes by itself."""
        led, began_at = self._fence.is_open(), self._clock()
        try:
            holds = self._try_acquire_or_renew()
        except KubeError as error:
            logger.warning("cannot renew the lease %s/%s: %s", self._namespace, self._name, error)
            self._was_away |= not isinstance(error, TooManyRequests)
            return
        now = self._clock()
        self._was_away |= now - began_at > _LATE
        if self._was_away and now >= self._returned_at + _RETURNS_AFTER:
            self._was_away, self._returned_at = False, now
            logger.info("the API server answers again")
            self._on_server_back()
        if holds:
            self._has_led = True
            led = self._fence.is_open()  # the deadline may have passed during the renewal
            self._fence.open_until(began_at + self._times.renew_deadline, self._term())
            if not led:
                logger.info("%s leads", self._identity)
                self._on_leading()
        elif led:
            self._fence.close()
            logger.warning("%s no longer leads", self._identity)

    def release(self) -> None:
        """Give the lease back if this process holds it; close the fence in any case."""
        led = self._fence.is_open()
        self._fence.close()
        if not led or self._observed is None:
            return
        spec = self._spec(self._observed) | {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            self._api.replace(LEASES, self._observed | {"spec": spec})
        except KubeError as error:
            logger.info("the lease was not given back and will expire: %s", error)

    def _try_acquire_or_renew(self) -> bool:
        try:
            lease = self._api.get(LEASES, self._name, namespace=self._namespace)
        except NotFound:
            # Somebody deleted it, and who held it may still write.
            return not self._is_held_by_another() and self._create()
        self._observe(lease)
        if self._is_held_by_another():
            return False
        try:
            changed = {"metadata": self._metadata(lease), "spec": self._spec(lease)}
            self._observe(self._api.replace(LEASES, lease | changed))
        except Conflict:
            return False  # another replica was faster
        return True

    def _is_held_by_another(self) -> bool:
        """Whether the lease that was read last is another's, and has not ended."""
        lease = self._observed
        if lease is None:
            return False
        holder = lease["spec"].get("holderIdentity") or ""
        return holder not in {"", self._identity} and self._clock() < self._expiry(lease)

    def _create(self) -> bool:
        body: Object = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._namespace, "name": self._name},
        }
        try:
            self._observe(self._api.create(LEASES, body | {"spec": self._spec(body)}))
        except AlreadyExists:
            return False
        return True

    def _observe(self, lease: Object) -> None:
        version, old = lease["metadata"]["resourceVersion"], self._observed
        if old is None or old["metadata"]["resourceVersion"] != version:
            self._observed_at = self._clock()
        self._observed = lease

    def _term(self) -> str:
        assert self._observed is not None  # it was just written
        transitions = self._observed["spec"]["leaseTransitions"]
        return f"{transitions}.{self._observed['metadata']['uid'][:8]}"

    def _expiry(self, lease: Object) -> float:
        duration = lease["spec"].get("leaseDurationSeconds") or self._times.duration
        return self._observed_at + min(float(duration), LONGEST)

    def _metadata(self, lease: Object) -> Object:
        metadata: Object = lease["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        if self._fenced_term is None:
            annotations.pop(ANNOTATION_ALLOCATOR, None)
        elif self._is_ours(lease) and self._fenced_term() == self._term():
            annotations[ANNOTATION_ALLOCATOR] = ALLOCATOR_SCHEDULER
        return metadata | {"annotations": annotations}

    def _is_ours(self, lease: Object) -> bool:
        """Whether this process holds the lease, and not one before it under its identity."""
        spec = lease.get("spec") or {}
        return self._has_led and spec.get("holderIdentity") == self._identity

    def _spec(self, lease: Object) -> Object:
        spec = lease.get("spec") or {}
        is_ours = self._is_ours(lease)
        transitions = int(spec.get("leaseTransitions") or 0)
        now = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._identity,
            # A whole number in the API: other replicas wait at least as long as we mean.
            "leaseDurationSeconds": ceil(self._times.duration),
            "acquireTime": spec.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if is_ours else transitions % _MOST_TRANSITIONS + 1,
        }
