"""The start of the controller's process while the API server is away, or refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import pytest

from controller import main
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.errors import KubeError, TooManyRequests, Unavailable
from dra_driver.kube.server_wait import ServerWait
from dra_driver.telemetry.probes import ProbeServer
from tests.cluster.waiting import wait_until
from tests.component.controller.stage import Stage
from tests.fake_api.api import FakeApi
from tests.fake_api.server import FakeServer

_ENDS: Final = 60.0  # seconds that only a failing test waits
NO_ANSWER: Final = Unavailable("no answer")
BUSY: Final = TooManyRequests("too many requests", retry_after=0.1)


class Process:
    """The program in a thread of the test's process."""

    def __init__(self, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._probes: list[ProbeServer] = []

        def remembered(*values: Any, **more: Any) -> ProbeServer:
            self._probes.append(ProbeServer(*values, **more))
            return self._probes[-1]

        monkeypatch.setattr(main, "ProbeServer", remembered)
        self.stop = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        flags = [f"--kubeconfig={kubeconfig}", "--http-port=0", "--lease-retry=0.1"]
        self.end: Future[None] = self._pool.submit(main.run, flags, {}, self.stop)

    def probe(self, path: str) -> tuple[int, str]:
        wait_until(lambda: self._probes and self._probes[0].port, _ENDS, "the probes")
        port = self._probes[0].port
        with closing(HTTPConnection("127.0.0.1", port, timeout=_ENDS)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def close(self) -> None:
        self.stop.set()
        self._pool.shutdown()


class Refusing(FakeApi):
    """Answers the question about its version with `error`, until that is None."""

    error: KubeError | None = None

    def server_version(self) -> ServerVersion:
        if self.error is not None:
            raise self.error
        return super().server_version()


@pytest.fixture
def stage() -> Stage:
    return Stage(Refusing())


@pytest.fixture
def process(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    with closing(Process(server.kubeconfig, monkeypatch)) as found:
        yield found


@pytest.fixture(params=[NO_ANSWER, BUSY], ids=["away", "busy"])
def refusal(request: pytest.FixtureRequest, stage: Stage) -> KubeError:
    assert isinstance(stage.api, Refusing)
    stage.api.error = request.param
    return stage.api.error


def test_it_waits_for_the_server_and_says_so(
    stage: Stage, refusal: KubeError, process: Process
) -> None:
    def waits() -> bool:
        return "waiting for the API server: " in process.probe("/readyz")[1]

    wait_until(waits, _ENDS, "the reason")
    assert process.probe("/readyz")[0] == 503
    assert process.probe("/healthz") == (200, "ok")
    assert isinstance(stage.api, Refusing)
    stage.api.error = None
    wait_until(lambda: process.probe("/readyz") == (200, "ok"), _ENDS, "the lists")
    assert not process.end.done()


def test_it_ends_in_order_while_it_waits(refusal: KubeError, process: Process) -> None:
    process.probe("/healthz")
    process.stop.set()
    process.end.result(_ENDS)


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_does_not_let_it_in_ends_it(
    stage: Stage, server: FakeServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    assert isinstance(stage.api, Refusing)
    stage.api.error = KubeError("no entry", status=status, reason="Refused")
    monkeypatch.setattr(main, "ServerWait", partial(ServerWait, starts=0.0))
    with (
        closing(Process(server.kubeconfig, monkeypatch)) as process,
        pytest.raises(KubeError, match=f"answered {status} .*no entry"),
    ):
        process.end.result(_ENDS)
