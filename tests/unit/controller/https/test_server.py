"""HTTPS over a real socket: who is let in, and what is answered."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv4Address
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest

from controller.https.certificates import CertificateFiles, Certificates
from controller.https.server import MOST_STRANGERS, Answer, HttpsServer
from dra_driver.model.errors import InvalidValue
from dra_driver.telemetry.http_server import HttpServer
from tests.cluster.pki import SCHEDULER, Authority, KeyPair
from tests.descriptors import readable

LOCAL = IPv4Address("127.0.0.1")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def scheduler(authority: Authority) -> KeyPair:
    return authority.client("scheduler", SCHEDULER)


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> CertificateFiles:
    """The server's own, as a Secret would be mounted."""
    pair = authority.server("first", (LOCAL,), ())
    made = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    install(made, pair)
    assert made.client_authority is not None
    made.client_authority.write_bytes(authority.certificate.read_bytes())
    return made


def serve(
    trusted: CertificateFiles | Certificates, answers: Mapping[str, Answer], *, port: int = 0
) -> HttpsServer:
    """Not started."""
    certificates = trusted if isinstance(trusted, Certificates) else Certificates(trusted)
    return HttpsServer(
        port, certificates, answers, name="extender", purpose="of the scheduler extender"
    )


@pytest.fixture
def server(files: CertificateFiles) -> Iterator[HttpsServer]:
    made = serve(files, {"/filter": lambda body: b"<" + body + b">"})
    made.start()
    yield made
    made.stop()


@pytest.fixture
def talk(
    server: HttpsServer, authority: Authority, scheduler: KeyPair
) -> Iterator[http.client.HTTPSConnection]:
    """A connection as kube-scheduler has it."""
    made = connection(server, authority, scheduler)
    yield made
    made.close()


def install(files: CertificateFiles, pair: KeyPair) -> None:
    """Renamed into place, as a Secret's files are exchanged."""
    for source, target in ((pair.certificate, files.certificate), (pair.key, files.key)):
        new = target.with_suffix(".new")
        new.write_bytes(source.read_bytes())
        new.rename(target)


def connection(
    server: HttpsServer, authority: Authority, client: KeyPair | None
) -> http.client.HTTPSConnection:
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    if client is not None:
        trust.load_cert_chain(client.certificate, client.key)
    return http.client.HTTPSConnection(str(LOCAL), server.port, context=trust, timeout=10)


def served_serial(server: HttpsServer, authority: Authority, client: KeyPair) -> str:
    made = connection(server, authority, client)
    made.connect()
    assert isinstance(made.sock, ssl.SSLSocket)
    found = made.sock.getpeercert()
    made.close()
    assert found is not None
    return str(found["serialNumber"])


def test_one_connection_carries_many_calls(talk: http.client.HTTPSConnection) -> None:
    for body in (b"one", b"two"):
        talk.request("POST", "/filter", body)
        answer = talk.getresponse()
        assert (answer.status, answer.read()) == (200, b"<" + body + b">")
        assert answer.headers["Content-Type"] == "application/json"


def test_nobody_comes_in_without_a_certificate(server: HttpsServer, authority: Authority) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        answer(connection(server, authority, None))


def test_nobody_comes_in_with_a_certificate_of_another_authority(
    server: HttpsServer, authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").client("scheduler", SCHEDULER)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        answer(connection(server, authority, stranger))


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


def answer(made: http.client.HTTPSConnection) -> bytes:
    try:
        made.request("POST", "/filter", b"x")
        return made.getresponse().read()
    finally:
        made.close()


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


def test_a_new_certificate_is_served_without_a_restart(
    server: HttpsServer, files: CertificateFiles, authority: Authority, scheduler: KeyPair
) -> None:
    before = served_serial(server, authority, scheduler)
    install(files, authority.server("second", (LOCAL,), ()))
    assert served_serial(server, authority, scheduler) != before


def test_a_certificate_that_cannot_be_read_leaves_the_one_before(
    server: HttpsServer,
    files: CertificateFiles,
    authority: Authority,
    scheduler: KeyPair,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = served_serial(server, authority, scheduler)
    files.key.write_text("half a key")
    with caplog.at_level(logging.WARNING):
        assert served_serial(server, authority, scheduler) == before
    assert "the previous certificate stays in use" in caplog.text


def test_without_any_certificate_it_does_not_start(files: CertificateFiles) -> None:
    files.certificate.unlink()
    with pytest.raises(InvalidValue, match="certificate to serve with cannot be loaded"):
        serve(files, {}).start()


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


@pytest.mark.parametrize("subject", [SCHEDULER.user, "", "kube-schedule"])
def test_a_subject_of_the_client_can_be_required(
    files: CertificateFiles,
    authority: Authority,
    scheduler: KeyPair,
    caplog: pytest.LogCaptureFixture,
    subject: str,
) -> None:
    is_served = subject in ("", SCHEDULER.user)
    certificates = Certificates(files, subject)
    server = serve(certificates, {"/filter": lambda body: body})
    server.start()
    try:
        with caplog.at_level(logging.INFO):
            if is_served:
                assert answer(connection(server, authority, scheduler)) == b"x"
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    answer(connection(server, authority, scheduler))
    finally:
        server.stop()
    assert ("client" in certificates.ends()) is is_served
    assert (f"is of {SCHEDULER.user}, and" in caplog.text) is not is_served


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


def test_without_an_authority_clients_need_no_certificate(
    files: CertificateFiles, authority: Authority
) -> None:
    certificates = Certificates(CertificateFiles(files.certificate, files.key))
    server = serve(certificates, {"/filter": lambda body: body})
    server.start()
    try:
        assert answer(connection(server, authority, None)) == b"x"
    finally:
        server.stop()
    assert certificates.ends().keys() == {"server"}


def test_a_query_does_not_matter(talk: http.client.HTTPSConnection) -> None:
    talk.request("POST", "/filter?timeout=5s", b"x")
    assert talk.getresponse().read() == b"<x>"
