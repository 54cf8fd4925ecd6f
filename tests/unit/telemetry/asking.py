"""A probe server, and who asks it."""

from __future__ import annotations

import http.client
from collections.abc import Callable

from dra_driver.telemetry.probes import ProbeServer

Serve = Callable[..., ProbeServer]


def ask(
    server: ProbeServer, path: str, method: str = "GET", host: str = "127.0.0.1"
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(host, server.port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers
    finally:
        connection.close()
