"""Replicas of the controller that elect a leader by one lease, each with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from controller.leaderelection.fence import Fence
from controller.leaderelection.leader import LeaderElector, LeaseTimes
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import LEASES
from dra_driver.model.claims.claim import Object
from tests.fake_api.api import FakeApi
from tests.fake_api.faults import Call
from tests.fake_api.store import Key

_KEY: Final = Key(LEASES, "default", "lease")


class Leases(FakeApi):
    """A server with one lease; `away` it answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False

    @property
    def lease(self) -> Object:
        found = self.store.find(_KEY)
        assert found is not None
        return found

    def delete_lease(self) -> None:
        self.store.remove(_KEY)

    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"])

    def annotations(self) -> Object:
        return self.lease["metadata"].get("annotations") or {}

    def _begin(self, verb: str, *of: Any, **how: Any) -> Call:
        if self.away:
            raise Unavailable("no answer")
        return super()._begin(verb, *of, **how)


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
        self.returns = 0  # of the server
        self.fence = Fence(lambda: self.time)
        self.elector = LeaderElector(
            leases,
            self.fence,
            namespace="default",
            name="lease",
            identity=name,
            times=times,
            on_leading=self._lead,
            on_server_back=self._return,
            fenced_term=fenced_term,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            clock=lambda: self.time,
        )

    def _lead(self) -> None:
        self.leading += 1

    def _return(self) -> None:
        self.returns += 1

    def after(self, seconds: float) -> bool:
        """Steps once, `seconds` later; gives whether it leads."""
        self.time += seconds
        self.elector.step()
        return self.fence.is_open()
