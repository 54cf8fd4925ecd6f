"""What a request to the API server costs us: our connections beside `urllib3`.

A stand-in server, in a process of its own, answers each request over TLS with an allocated claim,
so that only the client differs. Both clients run alternately, in rounds, so that noise hits both:
`cpu_us` is the process's CPU time for one request, `wall_us` the median of the time that one takes.
A write is a PUT of that claim through `dra_driver.kube.client`, JSON both ways included.
"""

from __future__ import annotations

import argparse
import json
import socketserver
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import urllib3

from bench import lists
from bench.report import percentile, result, table
from dra_driver.kube.client import Client
from dra_driver.kube.http.cluster_config import ClusterConfig, trusting
from dra_driver.kube.http.connections import Connections, HttpResponse
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.effects import Effects
from tests.cluster.pki import Authority

_CLAIM: Final = lists.claim(7)
_ROUNDS: Final = 10
_REQUESTS: Final = 500  # of one round
_CALLERS: Final = 16


class Pool(Connections):
    """Requests over a pool of urllib3, without redirects and retries."""

    def __init__(self, access: ClusterConfig, *, at_once: int) -> None:
        super().__init__(access, at_once=at_once)
        self._server = access.server
        self._pool = urllib3.PoolManager(
            maxsize=at_once, block=True, ssl_context=access.tls, retries=False
        )

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> HttpResponse:
        found = self._pool.request(
            method, self._server + path, body=body, headers=headers, timeout=seconds, redirect=False
        )
        return HttpResponse(
            found.status, {k.lower(): v for k, v in found.headers.items()}, found.data
        )

    def close(self) -> None:
        self._pool.clear()


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        body = json.dumps(_CLAIM, separators=(",", ":")).encode()
        head = (
            "HTTP/1.1 200 OK\r\nAudit-Id: 0\r\nCache-Control: no-cache, private\r\n"
            "Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 0\r\n"
            f"Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        answer = head.encode() + body
        while self._take():
            self.wfile.write(answer)

    def _take(self) -> bool:
        """Read one request; False at the connection's end."""
        length, line = 0, self.rfile.readline()
        while line.strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            line = self.rfile.readline()
        self.rfile.read(length)
        return bool(line)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def serve(certificate: str, key: str) -> None:
    """Print the port and answer until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def measure(url: str, authority: Path) -> dict[str, dict[str, float]]:
    access = ClusterConfig(url, trusting(str(authority)), lambda: "t" * 1_000)
    clients = {
        name: Client(made(access, at_once=_CALLERS), effects=Effects(), user_agent="bench")
        for name, made in (("ours", Connections), ("urllib3", Pool))
    }
    name, namespace = _CLAIM["metadata"]["name"], _CLAIM["metadata"]["namespace"]
    works: dict[str, Callable[[Client], object]] = {
        "read": lambda client: client.get(RESOURCE_CLAIMS, name, namespace=namespace),
        "write": lambda client: client.replace(RESOURCE_CLAIMS, _CLAIM, subresource="status"),
    }
    figures: dict[str, dict[str, float]] = {}
    for what, work in works.items():
        for callers in (1, _CALLERS):
            times: dict[str, list[float]] = {each: [] for each in clients}
            spent = dict.fromkeys(clients, 0.0)
            for _ in range(_ROUNDS):
                for each, client in clients.items():
                    before = time.process_time()
                    times[each] += _round(work, client, callers)
                    spent[each] += time.process_time() - before
            figures[f"{what}, {callers} callers"] = {
                f"{each}_{unit}": round(value, 1)
                for each in clients
                for unit, value in (
                    ("cpu_us", spent[each] / _ROUNDS / _REQUESTS * 1e6),
                    ("wall_us", percentile(times[each], 0.5) * 1e6),
                )
            }
    for client in clients.values():
        client.close()
    return figures


def _round(work: Callable[[Client], object], client: Client, callers: int) -> list[float]:
    def one(_: int) -> float:
        started = time.perf_counter()
        work(client)
        return time.perf_counter() - started

    if callers == 1:
        return [one(number) for number in range(_REQUESTS)]
    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(one, range(_REQUESTS)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", nargs=2, metavar=("CERTIFICATE", "KEY"), help="the server alone")
    given = parser.parse_args()
    if given.serve:
        serve(*given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        pair = authority.server("server", [IPv4Address("127.0.0.1")], [])
        command = [sys.executable, "-m", "bench.http", "--serve", pair.certificate, pair.key]
        with subprocess.Popen([str(e) for e in command], stdout=subprocess.PIPE, text=True) as made:
            assert made.stdout is not None
            try:
                port = made.stdout.readline().strip()
                figures = measure(f"https://127.0.0.1:{port}", authority.certificate)
            finally:
                made.terminate()
    columns = list(next(iter(figures.values())))
    rows: list[list[Any]] = [[what, *found.values()] for what, found in figures.items()]
    table("One request of 3 KiB", ["", *columns], rows)
    result(figures)


if __name__ == "__main__":
    main()
