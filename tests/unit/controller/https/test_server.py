"""HTTPS over a real socket: what is answered, and how little strangers can take."""

from __future__ import annotations

import http.client
import json
import logging
import platform
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

import pytest

from controller.https.certificates import CertificateFiles
from controller.https.server import MOST_STRANGERS, HttpsServer
from dra_driver.model.errors import InvalidValue
from dra_driver.telemetry.http_server import HttpServer
from dra_driver.version import VERSION
from tests.cluster.pki import Authority, KeyPair
from tests.descriptors import readable
from tests.unit.controller.https.serving import LOCAL, connection, serve


@pytest.fixture
def talk(
    server: HttpsServer, authority: Authority, scheduler: KeyPair
) -> Iterator[http.client.HTTPSConnection]:
    """A connection as kube-scheduler has it."""
    made = connection(server, authority, scheduler)
    yield made
    made.close()


def test_one_connection_carries_many_calls(talk: http.client.HTTPSConnection) -> None:
    for body in (b"one", b"two"):
        talk.request("POST", "/filter", body)
        answer = talk.getresponse()
        assert (answer.status, answer.read()) == (200, b"<" + body + b">")
        assert answer.headers["Content-Type"] == "application/json"


def test_get_is_answered_with_the_version_alone(talk: http.client.HTTPSConnection) -> None:
    talk.request("GET", "/version")
    answer = talk.getresponse()
    version = json.load(answer)
    assert (answer.status, version["gitVersion"]) == (200, f"v{VERSION}")
    assert version["pythonVersion"] == platform.python_version()
    talk.request("GET", "/filter")
    assert talk.getresponse().status == 404


def call(talk: http.client.HTTPSConnection) -> None:
    talk.request("POST", "/filter", b"x")
    assert talk.getresponse().read() == b"<x>"


def strangers(server: HttpsServer, count: int) -> list[socket.socket]:
    """Connections that show no certificate."""
    return [socket.create_connection((str(LOCAL), server.port), timeout=10) for _ in range(count)]


def test_strangers_that_say_nothing_give_way_to_others(
    server: HttpsServer, talk: http.client.HTTPSConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they would take all files that the process may open."""
    monkeypatch.setattr("controller.https.server._HANDSHAKE", 600.0)
    call(talk)
    silent = strangers(server, MOST_STRANGERS + 1)
    ended = wait(silent, timeout=10)
    assert [each.recv(1) for each in silent if each in ended] == [b""]
    call(talk)  # who has shown a certificate is no stranger
    for each in silent:
        each.close()


def test_a_burst_of_connections_waits_to_be_accepted(
    server: HttpsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux would tell the others a second later, at the earliest."""
    accepting = threading.Lock()
    verify = HttpServer.verify_request

    def late(self: HttpServer, *call: Any) -> bool:
        with accepting:
            return verify(self, *call)

    monkeypatch.setattr(HttpServer, "verify_request", late)
    with accepting:
        for each in strangers(server, 100):
            each.close()


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [
        ("/metrics", ("Accept", "*/*"), 404),
        ("/filter", ("Transfer-Encoding", "chunked"), 411),
        ("/filter", ("Content-Length", str(17 * 2**20)), 413),
    ],
    ids=["another path", "no length", "too long"],
)
def test_other_calls_are_refused(
    talk: http.client.HTTPSConnection, path: str, header: tuple[str, str], status: int
) -> None:
    talk.putrequest("POST", path)
    talk.putheader(*header)
    talk.endheaders()
    assert talk.getresponse().status == status


def test_a_taken_port_is_said(server: HttpsServer, files: CertificateFiles) -> None:
    with pytest.raises(InvalidValue, match=f"port {server.port} of the scheduler extender"):
        serve(files, {}, port=server.port).start()


def test_a_body_that_comes_byte_by_byte_is_ended(
    server: HttpsServer, talk: http.client.HTTPSConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_driver.telemetry.http_server.LONGEST_REQUEST", 0.3)
    talk.putrequest("POST", "/filter")
    talk.putheader("Content-Length", "1000")
    talk.endheaders(b"x")
    assert talk.sock is not None
    for _ in range(1000):
        if readable(talk.sock, within=0.02):
            break
        talk.sock.sendall(b"x")
    assert talk.sock.recv(1) == b""


def test_a_call_that_ends_in_the_middle_is_not_answered(
    files: CertificateFiles, authority: Authority, scheduler: KeyPair
) -> None:
    calls: list[bytes] = []

    def note(body: bytes) -> bytes:
        calls.append(body)
        return b"{}"

    server = serve(files, {"/bind": note})
    server.start()
    try:
        made = connection(server, authority, scheduler)
        made.putrequest("POST", "/bind")
        made.putheader("Content-Length", "1000")
        made.endheaders(b"{")
        assert isinstance(made.sock, ssl.SSLSocket)
        socket.socket.shutdown(made.sock, socket.SHUT_WR)
        with suppress(ssl.SSLError):  # an end without TLS' own farewell
            assert made.sock.recv(1) == b""
        made.close()
        assert calls == []
    finally:
        server.stop()


def test_strangers_fill_no_log(
    server: HttpsServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.https.server._LOG_EVERY", 600.0)
    with caplog.at_level(logging.INFO):
        for stranger in strangers(server, 20):
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with suppress(ConnectionError):
                while stranger.recv(100):
                    pass
            stranger.close()
    assert len([each for each in caplog.messages if "was not served" in each]) == 1


def test_a_query_does_not_matter(talk: http.client.HTTPSConnection) -> None:
    talk.request("POST", "/filter?timeout=5s", b"x")
    assert talk.getresponse().read() == b"<x>"
