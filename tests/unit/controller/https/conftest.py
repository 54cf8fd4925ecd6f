"""A server of HTTPS with certificates of a test's own authority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.https.certificates import CertificateFiles
from controller.https.server import HttpsServer
from tests.cluster.pki import SCHEDULER, Authority, KeyPair
from tests.unit.controller.https.serving import LOCAL, install, serve


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


@pytest.fixture
def server(files: CertificateFiles) -> Iterator[HttpsServer]:
    made = serve(files, {"/filter": lambda body: b"<" + body + b">"})
    made.start()
    yield made
    made.stop()
