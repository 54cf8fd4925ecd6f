"""Certificates of both ends: who is let in, and which certificate is served."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from controller.https.certificates import CertificateFiles, Certificates
from controller.https.server import HttpsServer
from dra_driver.model.errors import InvalidValue
from tests.cluster.pki import SCHEDULER, Authority, KeyPair
from tests.unit.controller.https.serving import LOCAL, answer, connection, install, serve


def served_serial(server: HttpsServer, authority: Authority, client: KeyPair) -> str:
    made = connection(server, authority, client)
    made.connect()
    assert isinstance(made.sock, ssl.SSLSocket)
    found = made.sock.getpeercert()
    made.close()
    assert found is not None
    return str(found["serialNumber"])


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
