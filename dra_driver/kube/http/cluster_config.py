"""The address of the API server, and the credentials for it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.model.errors import InvalidValue
from dra_driver.util.hooks import Clock

# k8s.io/client-go, rest/config.go, InClusterConfig.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_SECONDS: Final = 60.0


TokenSource = Callable[[], str]
"""The present bearer token, empty for none; raises OSError or ValueError if it is missing."""


class ClusterConfig(msgspec.Struct, frozen=True):
    """`server` is a URL. `tls` has the trusted authorities and perhaps a client certificate; it is
    unused for plain HTTP. `server_name` is the name in the server's certificate if it is not the
    URL's. `proxy` is the URL of an HTTP proxy. The file `authorities` has more trusted authorities,
    and may change.
    """

    server: str
    tls: ssl.SSLContext
    token: TokenSource = str  # always empty: there is a certificate, or no credentials
    server_name: str = ""
    proxy: str = ""
    authorities: Path | None = None

    def trusted(self) -> ssl.SSLContext:
        """`tls`, with the present authorities, for a new connection."""
        if self.authorities is not None:
            with suppress(OSError):  # it is being renewed
                self.tls.load_verify_locations(self.authorities)
        return self.tls


def token_file(path: Path, clock: Clock = time.monotonic) -> TokenSource:
    """A token that is read again every minute, since projected tokens rotate."""
    token, due = "", float("-inf")

    def present() -> str:
        nonlocal token, due
        now = clock()
        if now >= due:
            read = path.read_text("ascii").strip()
            if not read:
                raise ValueError(f"{path} is empty")
            token, due = read, now + _TOKEN_SECONDS
        return token

    return present


def in_pod(environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """The configuration of this pod, by its service account. Raises InvalidValue without one.

    Environment variables for proxies are ignored: the server is inside the cluster.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise _unusable("KUBERNETES_SERVICE_HOST and _PORT are not set")
    token, authorities = token_file(folder / "token"), folder / "ca.crt"
    try:
        tls = trusting(str(authorities))
        token()
    except (OSError, ValueError) as error:
        raise _unusable(str(error)) from error
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return ClusterConfig(server, tls, token, authorities=authorities)


def trusting(file: str | None = None, data: str | None = None) -> ssl.SSLContext:
    """A context that trusts the authorities of a file in PEM, or the system's; raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if file or data:
        context.load_verify_locations(cafile=file or None, cadata=data or None)
    else:
        context.load_default_certs()
    return context


def _unusable(reason: str) -> InvalidValue:
    return InvalidValue(
        f"no API server can be reached through the pod's service account: {reason}",
        remedy="run in a pod with a service account, or name a kubeconfig",
    )
