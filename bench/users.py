"""Pods and claims as users make them, and what a watch sees of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.fleet import Object
from bench.programs import SECONDS
from bench.published import claim_of, for_all
from bench.scenarios import Scenario
from dra_driver.kube.api import Change
from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import allocation
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

NAMESPACE: Final = "default"


def is_bound(pod: Object) -> bool:
    """Whether kube-scheduler has bound the pod."""
    return bool(pod["spec"].get("nodeName"))


def is_allocated(claim: Object) -> bool:
    """Whether the claim has devices."""
    return allocation(claim) is not None


class Seen:
    """When each object was done. The API server ends watches while it is busy; the reflector goes
    on where the watch ended."""

    def __init__(
        self,
        api: Client,
        resource: Resource,
        is_done: Callable[[Object], bool],
        namespace: str = NAMESPACE,
    ) -> None:
        self._is_done = is_done
        self._at: dict[str, float] = {}
        self._more = threading.Condition()
        self._reflector = Reflector(api, resource, self, namespace=namespace)
        self._reflector.start()
        if not self._reflector.synced.wait(SECONDS):
            raise TimeoutError(f"{resource.plural} could not be listed in {SECONDS:g} s")

    def last(self, count: int, seconds: float = SECONDS) -> float:
        """The time at which so many were done. Raises TimeoutError."""
        with self._more:
            if not self._more.wait_for(lambda: len(self._at) >= count, seconds):
                raise TimeoutError(f"{len(self._at)} of {count} were done in {seconds:g} s")
        return max(self._at.values())

    def close(self) -> None:
        self._reflector.stop(10.0)

    def on_replace(self, items: Sequence[Object]) -> None:
        for item in items:
            self.on_event(Change.ADDED, item)

    def on_event(self, _change: Change, obj: Object) -> None:
        if self._is_done(obj):
            with self._more:
                self._at.setdefault(obj["metadata"]["name"], time.monotonic())
                self._more.notify()


@dataclass(frozen=True, slots=True)
class Users:
    """Of one namespace. A claim has the name of the pod that uses it."""

    cluster: Cluster
    api: Client
    namespace: str = NAMESPACE

    def start(self, scenario: Scenario, request: Object, name: str) -> None:
        """A claim with the request, and its pod."""
        self.api.create(RESOURCE_CLAIMS, claim_of(name, self.namespace, [request]))
        self.api.create(PODS, scenario.pod(name, self.namespace, name))

    def start_all(self, scenario: Scenario, request: Object, count: int) -> None:
        """So many, many at a time."""
        names = [f"user-{number}" for number in range(count)]
        for_all(lambda name: self.start(scenario, request, name), names)

    def end_all(self) -> None:
        """Without a kubelet: pods at once, and then kube-controller-manager frees the claims."""
        claims = self._claims()
        path = f"/api/v1/namespaces/{self.namespace}/pods?gracePeriodSeconds=0"
        self.cluster.kubectl("delete", f"--raw={path}")
        for_all(
            lambda name: self.api.delete(RESOURCE_CLAIMS, name, namespace=self.namespace), claims
        )
        wait_until(lambda: not self._claims(), 2 * SECONDS, "the claims gone", interval=0.2)

    def _claims(self) -> list[str]:
        claims = self.api.list(RESOURCE_CLAIMS, namespace=self.namespace).items
        return [claim["metadata"]["name"] for claim in claims]
