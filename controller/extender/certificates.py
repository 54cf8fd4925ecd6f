"""The server's certificate and whose clients it serves, read anew when the files change."""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_driver.model.errors import InvalidValue

logger = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]
_NO_STAMP: Final[_Stamp] = ()


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files, as a kubernetes.io/tls Secret mounts them: `client_authority` is the authority
    of the certificates that kube-scheduler may show."""

    certificate: Path
    key: Path
    client_authority: Path

    def all(self) -> tuple[Path, ...]:
        return self.certificate, self.key, self.client_authority


class Certificates:
    """Gives a context for each connection. Safe for several threads."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._stamp = _NO_STAMP
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The context of the files as they are now; where they cannot be read, as in the middle
        of a Secret's update, the one before it.

        Raises InvalidValue where they never could be read.
        """
        with self._lock:
            try:
                stamp = tuple(_stamp(path) for path in self._files.all())
                if self._context is None or stamp != self._stamp:
                    self._context = _load(self._files)
                    self._stamp = stamp
                    logger.info("serving with the certificate %s", self._files.certificate)
            except (OSError, ssl.SSLError) as error:
                if self._context is None:
                    raise InvalidValue(
                        f"the certificate to serve with cannot be loaded: {error}",
                        remedy="give PEM files of a certificate, its key, and the CA of "
                        "kube-scheduler's",
                    ) from error
                logger.warning("the certificate stays the one before: %s", error)
            return self._context


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _load(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    # Whoever may call `bind` binds pods: nobody without a certificate comes in.
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(files.client_authority)
    return context
