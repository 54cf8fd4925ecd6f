"""What clients that send nothing, little or too much can take from a server, over a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.telemetry.http_server import ConnectionHandler, ConnectionLimit, HttpServer
from dra_driver.telemetry.probes import MOST_CONNECTIONS, ProbeServer
from tests.descriptors import readable
from tests.unit.telemetry.asking import Serve, ask

MODULE = "dra_driver.telemetry.http_server"


class Check:
    """Well, as soon as `go` is set."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.go = threading.Event()

    def __call__(self) -> str | None:
        self.asked.release()
        self.go.wait(60)
        return None


@pytest.fixture
def slow() -> Iterator[Check]:
    made = Check()
    yield made
    made.go.set()


@pytest.fixture
def server(serve: Serve, slow: Check) -> ProbeServer:
    """``/readyz`` is slow there."""
    return serve(ready=slow)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes the connections of a test."""
    with ExitStack() as made:
        yield made


def connect(server: ProbeServer, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))


def test_silent_connections_have_a_bounded_number_of_threads(
    server: ProbeServer, stack: ExitStack
) -> None:
    """And the kubelet's probes are answered meanwhile."""
    before = threading.active_count()
    silent = []
    for _ in range(MOST_CONNECTIONS):
        silent += [connect(server, stack) for _ in range(4)]
        assert ask(server, "/healthz")[:2] == (200, "ok")
    assert threading.active_count() < before + 2 * MOST_CONNECTIONS
    ended = [each for each in silent if readable(each, within=0)]
    assert ended == silent[: len(ended)]  # the oldest ones
    assert len(silent) - len(ended) in (MOST_CONNECTIONS - 1, MOST_CONNECTIONS)


def test_a_connection_that_is_being_answered_is_not_ended(
    server: ProbeServer, slow: Check, stack: ExitStack
) -> None:
    asking = connect(server, stack)
    asking.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
    assert slow.asked.acquire(timeout=60)
    for _ in range(MOST_CONNECTIONS + 1):
        connect(server, stack)
    assert ask(server, "/healthz")[0] == 200
    slow.go.set()
    assert asking.recv(100).startswith(b"HTTP/1.0 200 OK")


def test_where_all_are_being_answered_another_one_is_refused(
    server: ProbeServer, slow: Check, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}._UNTIL_FREE", 0.05)
    answering = [connect(server, stack) for _ in range(MOST_CONNECTIONS)]
    for each in answering:
        each.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert slow.asked.acquire(timeout=60)
    assert connect(server, stack).recv(1) == b""
    slow.go.set()
    for each in answering:
        assert each.recv(100).startswith(b"HTTP/1.0 200 OK")
    assert ask(server, "/healthz")[0] == 200


class Large(ConnectionHandler):
    """Answers with more than fits into the buffers on the way."""

    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        with self.server.connections.answering(self.connection):
            body = b"x" * 2**25
        self.send(HTTPStatus.OK, "text/plain", body)


def test_who_takes_no_answer_gives_way(stack: ExitStack) -> None:
    server = HttpServer(0, Large, name="large", purpose="of a test", limit=1)
    server.start()
    try:
        address = ("127.0.0.1", server.server_address[1])
        first = stack.enter_context(socket.create_connection(address, timeout=10))
        first.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert first.recv(8) == b"HTTP/1.0"
        second = stack.enter_context(socket.create_connection(address, timeout=10))
        second.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert second.recv(8) == b"HTTP/1.0"
    finally:
        server.stop()


def drip(connection: socket.socket, byte: bytes) -> bytes:
    """Sends one byte after the other until there is an end or an answer, which it gives."""
    for _ in range(1000):
        if readable(connection, within=0.02):
            return connection.recv(100)
        connection.sendall(byte)
    raise AssertionError("it goes on for ever")


@pytest.mark.parametrize("begin", [b"", b"GET /healthz HTTP/1.0\r\n"], ids=["line", "headers"])
def test_a_request_that_comes_byte_by_byte_is_ended(
    server: ProbeServer, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr(f"{MODULE}.LONGEST_REQUEST", 0.3)
    dripping = connect(server, stack)
    dripping.sendall(begin)
    assert drip(dripping, b"x") == b""
    assert ask(server, "/healthz")[0] == 200


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz?" + b"x" * 2**14 + b" HTTP/1.0\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\n" + b"A: b\r\nC: " + b"x" * 2**14 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\n" + (b"A: " + b"x" * 1000 + b"\r\n") * 17 + b"\r\n",
    ],
    ids=["line", "header", "headers"],
)
def test_a_head_that_is_too_long_is_refused(
    server: ProbeServer, stack: ExitStack, head: bytes
) -> None:
    asking = connect(server, stack)
    asking.sendall(head)
    assert asking.recv(100).startswith(b"HTTP/1.0 431 ")


def test_of_two_that_are_waited_for_the_silent_one_is_ended(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's thread has not read yet what came."""
    monkeypatch.setattr(f"{MODULE}._UNTIL_FREE", 0.0)
    pairs = [[stack.enter_context(each) for each in socket.socketpair()] for _ in range(3)]
    limit = ConnectionLimit(2)
    assert all(limit.admit(ours) for ours, _ in pairs[:2])
    (_, probe), (silent, other), (late, _) = pairs
    probe.sendall(b"GET /healthz")
    assert not limit.admit(late)
    assert readable(probe, other, within=0) == [other]
    limit.release(silent)
    assert limit.admit(late)


def test_an_address_that_is_not_here_names_the_port() -> None:
    with pytest.raises(InvalidValue, match="port 0 of a test cannot be opened"):
        HttpServer(0, ConnectionHandler, name="t", purpose="of a test", limit=1, host="192.0.2.1")


@pytest.mark.parametrize("host", ["127.0.0.1", *(["::1"] if socket.has_dualstack_ipv6() else [])])
def test_one_address_alone_is_served(host: str) -> None:
    server = HttpServer(0, ConnectionHandler, name="t", purpose="of a test", limit=1, host=host)
    server.start()
    try:
        port = server.server_address[1]
        socket.create_connection((host, port), timeout=10).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=10)
    finally:
        server.stop()
