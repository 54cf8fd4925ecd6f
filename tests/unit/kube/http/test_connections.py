"""Connections to a server of the standard library's, which does as it is told."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from dra_driver.kube.http.cluster_config import ClusterConfig, in_pod, trusting
from dra_driver.kube.http.connection import FAILURES
from dra_driver.kube.http.connections import Connections
from dra_driver.model.errors import InvalidValue
from tests.cluster.pki import Authority, Identity
from tests.descriptors import readable


class Server(ThreadingHTTPServer):
    """`seen` are the requests' lines, each with the port of its connection."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, int]] = []
        self.bodies: list[bytes] = []
        self.go_on = threading.Event()
        self._changed = threading.Condition()

    def note(self, line: str, port: int, body: bytes) -> None:
        """A request has come."""
        with self._changed:
            self.bodies.append(body)
            self.seen.append((line, port))
            self._changed.notify_all()

    def paths(self, count: int) -> dict[int, list[str]]:
        """Of `count` requests, by the port of their connection. A client that waits no longer is
        quicker than the server's thread."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= count, 60), self.seen
        assert len(self.seen) == count
        found: dict[int, list[str]] = {}
        for line, port in self.seen:
            found.setdefault(port, []).append(line.split()[1].removeprefix("/prefix"))
        return found

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        assert isinstance(self.server, Server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.note(self.requestline, self.client_address[1], body)
        is_kept = sum(port == self.client_address[1] for _, port in self.server.seen) > 1
        if is_kept and self.path.endswith("/dead"):
            self.close_connection = True
            return
        if is_kept and self.path.endswith("/vanished"):
            self.server.go_on.wait(60)
            self.close_connection = True
            return
        if self.path.endswith("/last"):  # which it does not say
            self.close_connection = True
        if self.path.endswith("/silence"):
            self.server.go_on.wait(60)
            self.close_connection = True
            return
        if self.path.endswith("/stream"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\none\r\n")
            self.server.go_on.wait(60)
            return
        self.send_response(404 if self.path.endswith("/nothing") else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_PUT = do_CONNECT = answer  # noqa: N815 - names of the standard library's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as above
        return


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.go_on.set()
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.fixture
def connections(server: Server) -> Iterator[Connections]:
    found = Connections(ClusterConfig(f"{server.url}/prefix", trusting()))
    yield found
    found.close()


def get(connections: Connections, path: str, seconds: float = 10.0) -> int:
    return connections.request("GET", path, {}, None, seconds).status


def test_a_connection_is_kept_whatever_the_answer(server: Server, connections: Connections) -> None:
    assert [get(connections, path) for path in ("/a", "/nothing", "/b")] == [200, 404, 200]
    answer = connections.request("PUT", "/c", {"X": "y"}, b"body", 10.0)
    assert (answer.status, answer.body) == (200, b"{}")
    assert server.bodies[-1] == b"body"
    assert server.seen[0][0] == "GET /prefix/a HTTP/1.1"
    assert len({port for _, port in server.seen}) == 1


def test_one_that_the_server_has_closed_is_not_used_again(
    server: Server, connections: Connections
) -> None:
    assert get(connections, "/last") == 200
    [kept] = connections._idle
    assert readable(kept.sock, within=10)
    assert get(connections, "/b") == 200
    assert len({port for _, port in server.seen}) == 2


@pytest.mark.parametrize("path", ["/dead", "/vanished"])
def test_a_get_survives_a_kept_connection_that_died(
    server: Server, connections: Connections, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("dra_driver.kube.http.connections._IDLE_SECONDS", 0.1)
    assert [get(connections, "/a"), get(connections, path)] == [200, 200]
    assert sorted(server.paths(3).values()) == [["/a", path], [path]]


def test_a_stream_survives_a_kept_connection_that_died(
    server: Server, connections: Connections
) -> None:
    assert get(connections, "/a") == 200
    with closing(connections.send("GET", "/dead", {}, None, 10.0)) as stream:
        assert (stream.status, stream.read()) == (200, b"{}")


def test_a_write_on_a_kept_connection_that_died_is_not_repeated(
    server: Server, connections: Connections
) -> None:
    """It may have been done: the connection can end after that and before the answer."""
    assert get(connections, "/a") == 200
    with pytest.raises(FAILURES):
        connections.request("PUT", "/dead", {}, b"body", 10.0)
    assert [*server.paths(2).values()] == [["/a", "/dead"]]


def test_silence_and_absence_are_failures_and_nothing_is_sent_twice(
    server: Server, connections: Connections
) -> None:
    with pytest.raises(FAILURES):
        get(connections, "/silence", 0.05)
    assert get(connections, "/a") == 200
    assert sorted(server.paths(2).values()) == [["/a"], ["/silence"]]
    with pytest.raises(FAILURES):
        get(Connections(ClusterConfig("http://127.0.0.1:1", trusting())), "/a")


def test_after_a_silence_nothing_is_sent_on_what_was_kept_before(
    server: Server, connections: Connections
) -> None:
    """The server behind them may have vanished; a new connection leads to one that is there."""
    kept = [connections._connect() for _ in range(3)]
    connections._idle.extend(kept)
    ports = {each.sock.getsockname()[1] for each in kept}
    with pytest.raises(TimeoutError):
        get(connections, "/silence", 0.05)
    assert get(connections, "/a") == 200
    found = server.paths(3)
    assert sorted(found.values()) == [["/a"], ["/silence"], ["/silence"]]
    assert [paths for port, paths in found.items() if port in ports] == [["/silence"]]


def test_many_at_once_share_few_connections(server: Server, connections: Connections) -> None:
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(partial(get, connections), ["/a"] * 200))
    assert found == [200] * 200
    assert len({port for _, port in server.seen}) <= 8


def test_who_gets_no_turn_is_told(server: Server, connections: Connections) -> None:
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(get, connections, "/silence", 60.0) for _ in range(8)]
        while len(server.seen) < 8:
            server.go_on.wait(0.01)
        with pytest.raises(TimeoutError, match="other requests"):
            get(connections, "/a", 0.05)
        server.go_on.set()
        for each in waiting:
            with pytest.raises(FAILURES):
                each.result()
    assert get(connections, "/a") == 200


def test_a_stream_is_ended_by_another_thread(server: Server, connections: Connections) -> None:
    stream = connections.send("GET", "/stream", {}, None, 10.0)
    assert stream.read1() == b"one"
    timer = threading.Timer(0.05, stream.shutdown)
    timer.start()
    with suppress(*FAILURES):
        assert stream.read1() == b""
    timer.join()
    stream.close()


def test_both_sides_show_their_certificates(server: Server, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    theirs = authority.server("server", [], ["api.test"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(theirs.certificate, theirs.key)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    ours = authority.client("ours", Identity("somebody"))
    tls = trusting(str(authority.certificate))
    tls.load_cert_chain(ours.certificate, ours.key)
    url = server.url.replace("http:", "https:")
    with closing(Connections(ClusterConfig(url, tls, server_name="api.test"))) as connections:
        assert get(connections, "/a") == 200
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        get(Connections(ClusterConfig(url, tls)), "/a")
    stranger = trusting(str(authority.certificate))
    with pytest.raises(FAILURES):
        get(Connections(ClusterConfig(url, stranger, server_name="api.test")), "/a")


def test_a_pod_trusts_the_authority_that_it_is_given_later(server: Server, tmp_path: Path) -> None:
    """The kubelet renews the pod's file when the cluster gets another authority."""
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    account = Authority(before).certificate
    (before / "token").write_text("one")
    authority = Authority(after)
    theirs = authority.server("server", [IPv4Address("127.0.0.1")])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(theirs.certificate, theirs.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    port = str(server.server_address[1])
    pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    with closing(Connections(in_pod(pod, before))) as connections:
        with pytest.raises(ssl.SSLCertVerificationError):
            get(connections, "/a")
        account.unlink()
        with pytest.raises(ssl.SSLCertVerificationError):
            get(connections, "/a")
        account.write_bytes(authority.certificate.read_bytes())
        assert get(connections, "/a") == 200


def test_a_proxy_is_asked_for_the_server(server: Server) -> None:
    access = ClusterConfig(
        "https://api.test:6443", trusting(), proxy=server.url.replace("//", "//u:p@")
    )
    with pytest.raises(FAILURES):  # it answers, and does not speak TLS
        get(Connections(access), "/a", 1.0)
    assert server.seen[0][0].startswith("CONNECT api.test:6443 ")


def test_a_proxy_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidValue, match="socks5://proxy"):
        Connections(ClusterConfig("https://api.test", trusting(), proxy="socks5://proxy:1080"))
