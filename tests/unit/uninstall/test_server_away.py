"""The Jobs of an uninstall while the API server is away: a Job of helm is not started again."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import ModuleType

import pytest

from dra_driver.kube.errors import Unavailable
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


JOBS = pytest.mark.parametrize(
    ("module", "flags", "resource"),
    [
        pytest.param(check, CHECK, RESOURCE_CLAIMS, id="check"),
        pytest.param(cleanup, ["--hidden-slices=true"], RESOURCE_SLICES, id="slices"),
        pytest.param(cleanup, ["--nodes=true"], NODES, id="nodes"),
    ],
)


def run(module: ModuleType, flags: Sequence[str], api: FakeApi, stop: Time) -> None:
    environ: Mapping[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "connect", lambda *_, **__: api)
        module.run(flags, environ, stop)


@JOBS
def test_it_is_waited_for(module: ModuleType, flags: Sequence[str], resource: Resource) -> None:
    api, stop = FakeApi(), Time()
    api.faults.refuse(Unavailable("away"), "list", resource=resource, times=3)
    run(module, flags, api, stop)
    assert stop.waits == 3


@JOBS
def test_a_job_that_is_ended_does_not_succeed(
    module: ModuleType, flags: Sequence[str], resource: Resource
) -> None:
    api = FakeApi()
    api.faults.refuse(Unavailable("away"), "list", resource=resource, times=9)
    with pytest.raises(Unavailable):
        run(module, flags, api, Time(stopped_in=2))
