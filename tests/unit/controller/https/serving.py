"""A server of HTTPS on this machine, and calls of it."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from ipaddress import IPv4Address

from controller.https.certificates import CertificateFiles, Certificates
from controller.https.server import Answer, HttpsServer
from tests.cluster.pki import Authority, KeyPair

LOCAL = IPv4Address("127.0.0.1")


def serve(
    trusted: CertificateFiles | Certificates, answers: Mapping[str, Answer], *, port: int = 0
) -> HttpsServer:
    """Not started."""
    certificates = trusted if isinstance(trusted, Certificates) else Certificates(trusted)
    return HttpsServer(
        port, certificates, answers, name="extender", purpose="of the scheduler extender"
    )


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


def answer(made: http.client.HTTPSConnection) -> bytes:
    try:
        made.request("POST", "/filter", b"x")
        return made.getresponse().read()
    finally:
        made.close()
