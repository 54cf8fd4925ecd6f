"""The Jobs of an uninstall while the API server is away: a Job of helm is not started again."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import ModuleType

import pytest

from dra_driver.kube.errors import KubeError, Unavailable
from dra_driver.kube.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.uninstall import check, cleanup
from tests.fake_api.api import FakeApi

CHECK = ("--release=gcu", "--release-namespace=gcu-system", "--revision=3")


class Time(threading.Event):
    """Of the program; waiting takes no time. It is stopped in the wait number `stopped_in`."""

    def __init__(self, stopped_in: int = 0) -> None:
        super().__init__()
        self.waits = 0
        self._stopped_in = stopped_in

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        return self.waits == self._stopped_in


@pytest.fixture(
    params=[
        (check, CHECK, RESOURCE_CLAIMS),
        (cleanup, ("--hidden-slices=true",), RESOURCE_SLICES),
        (cleanup, ("--nodes=true",), NODES),
    ],
    ids=["check", "slices", "nodes"],
)
def job(request: pytest.FixtureRequest) -> tuple[ModuleType, Sequence[str], Resource]:
    module, flags, resource = request.param
    return module, flags, resource


def run(module: ModuleType, flags: Sequence[str], api: FakeApi, stop: Time) -> None:
    environ: Mapping[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "connect", lambda *_, **__: api)
        module.run(flags, environ, stop)


def test_it_is_waited_for(job: tuple[ModuleType, Sequence[str], Resource]) -> None:
    module, flags, resource = job
    api, stop = FakeApi(), Time()
    api.faults.refuse(Unavailable("away"), "list", resource=resource, times=3)
    run(module, flags, api, stop)
    assert stop.waits == 3


def test_a_job_that_is_ended_does_not_succeed(
    job: tuple[ModuleType, Sequence[str], Resource],
) -> None:
    module, flags, resource = job
    api = FakeApi()
    api.faults.refuse(Unavailable("away"), "list", resource=resource, times=9)
    with pytest.raises(Unavailable):
        run(module, flags, api, Time(stopped_in=2))


def test_what_no_wait_helps_against_ends_it(
    job: tuple[ModuleType, Sequence[str], Resource],
) -> None:
    module, flags, resource = job
    api, stop = FakeApi(), Time()
    api.faults.refuse(KubeError("no such field", status=400), "list", resource=resource)
    with pytest.raises(KubeError, match="no such field"):
        run(module, flags, api, stop)
    assert stop.waits == 0
