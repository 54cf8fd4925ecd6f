"""Replicas of the controller that elect a leader by one lease, each with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import cast

from controller.leaderelection.fence import Fence
from controller.leaderelection.leader import LeaderElector, LeaseTimes
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Conflict, NotFound, Unavailable
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object


class Leases:
    """One lease, with the resourceVersion's rule; `away` refuses everything."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.away = False
        self.made = 0

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self._answer()
        if self.lease is None:
            raise NotFound("no lease", status=404)
        return self.lease

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        self._answer()
        assert self.lease is None
        self.made += 1
        self.lease = body | {
            "metadata": body["metadata"] | {"resourceVersion": "1", "uid": f"{self.made}-uid"}
        }
        return self.lease

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        self._answer()
        assert self.lease is not None
        version = self.lease["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != version:
            raise Conflict("changed", status=409)
        metadata = body["metadata"] | {"resourceVersion": str(int(version) + 1)}
        self.lease = body | {"metadata": metadata}
        return self.lease

    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])

    def annotations(self) -> Object:
        assert self.lease is not None
        return self.lease["metadata"].get("annotations") or {}

    def _answer(self) -> None:
        if self.away:
            raise Unavailable("no answer")


TIMES = LeaseTimes(duration=15.0, renew_deadline=10.0, retry=2.0)


class Replica:
    """An elector with its fence and a clock of its own."""

    def __init__(
        self,
        leases: Leases,
        name: str,
        times: LeaseTimes = TIMES,
        fenced_term: Callable[[], str] | None = None,
    ) -> None:
        self.time = 1000.0
        self.leading = 0
        self.fence = Fence(lambda: self.time)
        self.elector = LeaderElector(
            cast("Api", leases),
            self.fence,
            namespace="default",
            name="lease",
            identity=name,
            times=times,
            on_leading=self._lead,
            fenced_term=fenced_term,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            clock=lambda: self.time,
        )

    def _lead(self) -> None:
        self.leading += 1

    def after(self, seconds: float) -> bool:
        """Steps once, `seconds` later; gives whether it leads."""
        self.time += seconds
        self.elector.step()
        return self.fence.is_open()
