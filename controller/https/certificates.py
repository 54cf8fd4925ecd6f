"""The server's certificate and the CA of its clients, reloaded when the files change."""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dra_driver.model.errors import InvalidValue, Refused

logger = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]
_NO_STAMP: Final[_Stamp] = ()
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# How X.509 writes times (RFC 5280, 4.1.2.5), by their tag.
_TIMES: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
_EXPLICIT_VERSION: Final = 0xA0

SERVER: Final = "server"
AUTHORITY: Final = "authority"
CLIENT: Final = "client"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files, as a kubernetes.io/tls Secret mounts them. `client_authority` is the authority
    of the certificates that clients must show; without it clients need none."""

    certificate: Path
    key: Path
    client_authority: Path | None = None

    def all(self) -> tuple[Path, ...]:
        authority = self.client_authority
        return (self.certificate, self.key, *([] if authority is None else [authority]))


class Certificates:
    """Gives a TLS context for each connection. Safe for several threads. `subject` is the common
    name that a client's certificate must have; any without it."""

    def __init__(self, files: CertificateFiles, subject: str = "") -> None:
        self._files = files
        self._subject = subject
        self._lock = threading.Lock()
        self._stamp = _NO_STAMP
        self._context: ssl.SSLContext | None = None
        self._ends: dict[str, float] = {}

    def context(self) -> ssl.SSLContext:
        """The context of the current files. If these cannot be read, as during a Secret's update,
        the previous context.

        Raises InvalidValue if the files could not be read yet.
        """
        with self._lock:
            try:
                stamp = tuple(_stamp(path) for path in self._files.all())
                if self._context is None or stamp != self._stamp:
                    ends = {SERVER: min(_ends(self._files.certificate))}
                    if self._files.client_authority is not None:
                        # Of several, any may have signed the client's.
                        ends[AUTHORITY] = max(_ends(self._files.client_authority))
                    self._context = _load(self._files)
                    self._ends |= ends
                    self._stamp = stamp
                    logger.info("serving with the certificate %s", self._files.certificate)
            except (OSError, ValueError) as error:  # what ssl raises is an OSError
                if self._context is None:
                    raise InvalidValue(
                        f"the certificate to serve with cannot be loaded: {error}",
                        remedy="give PEM files of a certificate, its key, and the CA of the "
                        "client's",
                    ) from error
                logger.warning("the previous certificate stays in use: %s", error)
            return self._context

    def admit(self, client: ssl.SSLSocket) -> None:
        """Record the end of the client's certificate, if clients must show one. Raises Refused
        where the certificate has another subject than the one required."""
        if self._files.client_authority is None:
            return
        certificate: dict[str, Any] = client.getpeercert() or {}
        names = [
            value
            for part in certificate.get("subject", ())
            for key, value in part
            if key == "commonName"
        ]
        if self._subject and self._subject not in names:
            raise Refused(
                f"the client's certificate is of {', '.join(names) or 'nobody'}, "
                f"and extender-client-subject is {self._subject}"
            )
        with self._lock:
            self._ends[CLIENT] = ssl.cert_time_to_seconds(str(certificate["notAfter"]))

    @property
    def requires_client(self) -> bool:
        """Whether a client must show a certificate."""
        return self._files.client_authority is not None

    def ends(self) -> Mapping[str, float]:
        """When (Unix time) the certificates expire: the server's, the authority's and the last
        client's, as far as there are any. Raises InvalidValue as `context` does."""
        self.context()
        with self._lock:
            return dict(self._ends)


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _load(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    if files.client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files.client_authority)
    return context


def _ends(path: Path) -> list[float]:
    """When the file's certificates expire. Raises OSError or ValueError."""
    blocks = _PEM.findall(path.read_text(encoding="ascii"))
    if not blocks:
        raise ValueError(f"{path} has no certificate")
    return [_not_after(ssl.PEM_cert_to_DER_cert(each)) for each in blocks]


def _not_after(certificate: bytes) -> float:
    """The end of an X.509 certificate's validity, parsed from DER (RFC 5280, 4.1): the standard
    library parses only the certificate of a connection's peer. Raises ValueError."""
    try:
        [(_, signed)] = _elements(certificate)
        fields = list(_elements(next(_elements(signed))[1]))
        if fields[0][0] == _EXPLICIT_VERSION:
            del fields[0]
        _serial, _algorithm, _issuer, (_, validity), *_ = fields
        _, (tag, text) = _elements(validity)
        end = datetime.strptime(text.decode("ascii"), _TIMES[tag])  # noqa: DTZ007 (it is UTC)
    except (IndexError, KeyError, StopIteration, ValueError) as error:
        raise ValueError("a certificate is damaged") from error
    return end.replace(tzinfo=UTC).timestamp()


def _elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element, as DER has them one after the other."""
    at = 0
    while at < len(content):
        tag, length = content[at], content[at + 1]
        at += 2
        if length & 0x80:  # the length of the length
            size = length & 0x7F
            length = int.from_bytes(content[at : at + size], "big")
            at += size
        if at + length > len(content):
            raise ValueError("an element ends beyond its parent")
        yield tag, content[at : at + length]
        at += length
