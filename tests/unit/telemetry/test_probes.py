"""Probes and metrics over a real socket."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry, Counter

from dra_driver.kube.api import ServerVersion
from dra_driver.model.errors import InvalidValue
from dra_driver.telemetry.probes import ProbeServer
from dra_driver.version import VERSION
from tests.unit.telemetry.asking import Serve, ask


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/healthz", 200, "ok"),
        ("/readyz", 503, "the kubelet has not called: 100 % läuft nicht"),
        ("/readyz?verbose", 503, "the kubelet has not called: 100 % läuft nicht"),
        ("/", 404, "healthz, readyz, startz, metrics and version are served here"),
        ("/healthz/", 404, "healthz, readyz, startz, metrics and version are served here"),
        ("/../healthz", 404, "healthz, readyz, startz, metrics and version are served here"),
    ],
)
def test_an_answer(serve: Serve, path: str, status: int, body: str) -> None:
    server = serve(ready=lambda: "the kubelet has not called: 100 % läuft nicht")
    found, text, headers = ask(server, path)
    assert (found, text) == (status, body)
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["Content-Length"] == str(len(body.encode()))


def test_the_version_is_said_as_kubernetes_says_its_own(serve: Serve) -> None:
    status, text, headers = ask(serve(), "/version")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(text)["gitVersion"] == f"v{VERSION}"
    assert ServerVersion.parse(json.loads(text)).git == f"v{VERSION}"


def test_each_answer_is_of_now(serve: Serve) -> None:
    reasons = iter(["not yet", None, "gone"])
    server = serve(ready=lambda: next(reasons))
    assert [ask(server, "/readyz")[:2] for _ in range(3)] == [
        (503, "not yet"),
        (200, "ok"),
        (503, "gone"),
    ]


class Time:
    """Passes only where somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


@pytest.mark.parametrize(
    ("ready_at", "live", "answer", "waited"),
    [
        (0.0, None, (200, "ok"), 0.0),
        (4.0, None, (200, "ok"), 4.0),
        (float("inf"), None, (200, "ok"), 30.0),
        (float("inf"), "a thread ended", (503, "a thread ended"), 30.0),
    ],
    ids=["ready", "soon ready", "never ready", "never ready and not alive"],
)
def test_the_start_is_over_when_the_program_is_ready_or_late(
    serve: Serve, ready_at: float, live: str | None, answer: tuple[int, str], waited: float
) -> None:
    passing = Time()
    server = serve(
        ready=lambda: None if passing.now >= ready_at else "not yet",
        live=lambda: live,
        clock=passing.clock,
        wait=passing.wait,
    )
    assert ask(server, "/startz")[:2] == answer
    assert passing.now == pytest.approx(waited, abs=0.11)


def test_those_who_wait_for_the_start_hold_up_nobody_else_nor_the_end(serve: Serve) -> None:
    """Else they would have all threads for half a minute."""
    asked = threading.Semaphore(0)

    def never() -> str:
        asked.release()
        return "not yet"

    server = serve(ready=never)
    with ThreadPoolExecutor(4) as clients:
        waiting = []
        for _ in range(4):
            waiting.append(clients.submit(ask, server, "/startz"))
            assert asked.acquire(timeout=60)
        assert ask(server, "/startz")[0] == 200
        assert not any(each.done() for each in waiting)
        server.stop()
        assert [each.result(60)[0] for each in waiting] == [200] * 4


def test_metrics_are_those_of_the_registry_given(serve: Serve) -> None:
    registry = CollectorRegistry()
    Counter("gcu_things", "How many.", registry=registry).inc(3)
    status, text, headers = ask(serve(registry=registry), "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert "gcu_things_total 3.0" in text
    assert "python_info" not in text


def test_other_methods_are_not_served(serve: Serve) -> None:
    assert ask(serve(), "/healthz", "POST")[0] == 501


def test_nothing_tells_which_python_it_is(serve: Serve) -> None:
    assert "Python" not in (ask(serve(), "/healthz")[2]["Server"] or "")


def test_every_family_that_the_machine_has_is_served(serve: Serve) -> None:
    server = serve()
    hosts = ["127.0.0.1", *(["::1"] if socket.has_dualstack_ipv6() else [])]
    assert {ask(server, "/healthz", host=host)[0] for host in hosts} == {200}


def test_a_slow_client_keeps_nobody_waiting(serve: Serve) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as slow:
        slow.sendall(b"GET /heal")
        assert ask(server, "/healthz")[0] == 200
        slow.sendall(b"thz HTTP/1.0\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.0 200 OK")


def test_a_silent_client_is_let_go(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dra_driver.telemetry.http_server.ConnectionHandler.idle", 0.05)
    server = serve()
    with (
        caplog.at_level(logging.WARNING),
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as silent,
    ):
        assert silent.recv(1) == b""
    assert caplog.records == []


def test_a_check_that_fails_is_logged_and_the_next_is_answered(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> str | None:
        raise LookupError("a bug")

    server = serve(ready=broken)
    with caplog.at_level(logging.DEBUG), pytest.raises(http.client.RemoteDisconnected):
        ask(server, "/readyz")
    assert ask(server, "/healthz")[0] == 200
    (record,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


def test_a_port_that_is_taken_names_it(serve: Serve) -> None:
    taken = serve().port
    with pytest.raises(InvalidValue, match=rf"port {taken} for probes .*Address already in use"):
        serve(taken)


def test_stop_before_start_and_twice() -> None:
    server = ProbeServer(0, ready=lambda: None, live=lambda: None, registry=CollectorRegistry())
    server.stop()
    server.start()
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        ask(server, "/healthz")
