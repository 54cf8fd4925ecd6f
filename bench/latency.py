"""How many pods a second are served where the API server takes 20 ms for each write.

A stand-in server, in a process of its own, lists nodes and slices; on a request its watches
report pods with a claim for a card each. Each write is answered after `--delay`, however
many are under way. The time runs from the first event to the last allocation; the processor time
is that of the controller, a real process, in between.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

from bench import fleet, lists
from bench.programs import cpu_seconds
from bench.report import result, table
from controller.cache.claims import MANAGER
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from tests.cluster.pki import Authority
from tests.control_plane.controller_process import MeasuredController
from tests.control_plane.objects import pod_with

Object = dict[str, Any]
_WATCHED: Final = (
    NODES,
    PODS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
)
_WRITTEN: Final = [
    {
        "manager": MANAGER,
        "subresource": "status",
        "operation": "Update",
        "fieldsV1": {"f:status": {"f:allocation": {}}},
    }
]
_SECONDS: Final = 120.0  # after which a run is given up


class StandIn:
    """Keeps claims only; whatever else is written is answered as it came."""

    def __init__(self, nodes: int, pods: int, delay: float) -> None:
        self._delay = delay
        self._version = 1
        self._began = self._ended = 0.0
        self._watches: defaultdict[str, list[asyncio.StreamWriter]] = defaultdict(list)
        self._claims = [fleet.claim([fleet.request("whole")]) for _ in range(pods)]
        self._waiting = {claim["metadata"]["name"] for claim in self._claims}
        self._lists: dict[str, list[Object]] = {each.path(""): [] for each in _WATCHED}
        self._lists[NODES.path("")] = [lists.node(number) for number in range(nodes)]
        self._lists[RESOURCE_SLICES.path("")] = [
            lists.resource_slice(number) for number in range(nodes)
        ]
        self._lists[DEVICE_CLASSES.path("")] = [
            each | {"metadata": each["metadata"] | {"uid": name, "resourceVersion": "1"}}
            for name, each in fleet.classes().items()
        ]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until its end."""
        with suppress(ConnectionResetError):
            await self._requests(reader, writer)
        writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            method, target, _ = head.decode().split()
            length = 0
            while (line := await reader.readline()).strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = await reader.readexactly(length)
            url = urlsplit(target)
            if "watch" in parse_qs(url.query):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
                self._watches[url.path].append(writer)
                await reader.read()
                return
            status, answer = await self._answer(method, url.path, body)
            content = json.dumps(answer).encode()
            writer.write(
                f"HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\n\r\n".encode()
                + content
            )
            await writer.drain()

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[int, Object]:
        if path == "/begin":
            self._begin()
            return 200, {}
        if path == "/seconds":
            return 200, {"seconds": self._ended - self._began if self._ended else None}
        if path == "/version":
            return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
        if method == "GET":
            if path not in self._lists:
                return 404, {"kind": "Status", "code": 404, "message": "there is none"}
            metadata = {"resourceVersion": "1"}
            return 200, {"metadata": metadata, "items": self._lists[path]}
        await asyncio.sleep(self._delay)
        written: Object = json.loads(body)
        self._version += 1
        metadata = written.setdefault("metadata", {})
        metadata["resourceVersion"] = str(self._version)
        metadata.setdefault("uid", f"uid-{self._version}")
        if f"/{RESOURCE_CLAIMS.plural}/" in path:
            if path.endswith("/status"):
                metadata["managedFields"] = _WRITTEN
                self._waiting.discard(metadata["name"])
                self._ended = 0.0 if self._waiting else time.monotonic()
            else:
                written.pop("status", None)  # a write of the object leaves it as it was
            self._notify(RESOURCE_CLAIMS, "MODIFIED", written)
        return 200, written

    def _begin(self) -> None:
        self._began = time.monotonic()
        for claim in self._claims:
            self._notify(RESOURCE_CLAIMS, "ADDED", claim)
            name = claim["metadata"]["name"]
            pod = pod_with(f"pod-{name}", "default", name)
            pod["metadata"] |= {"uid": f"pod-{name}", "resourceVersion": "1"}
            self._notify(PODS, "ADDED", pod | {"status": {"phase": "Pending"}})

    def _notify(self, kind: Resource, change: str, obj: Object) -> None:
        typed = {"apiVersion": kind.api_version, "kind": kind.kind} | obj
        line = json.dumps({"type": change, "object": typed}).encode() + b"\n"
        for writer in self._watches[kind.path("")]:
            writer.write(line)


async def serve(stand_in: StandIn, certificate: str, key: str) -> None:
    """Print the port and answer until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def measure(url: str, folder: Path, authority: Authority, flags: list[str]) -> Object:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(url, authority.certificate)))
    trusted = ssl.create_default_context(cafile=str(authority.certificate))

    def ask(path: str) -> Object:
        with urlopen(Request(url + path, method="POST"), context=trusted, timeout=60) as answer:
            found: Object = json.loads(answer.read())
        return found

    log = folder / "controller.log"
    controller = MeasuredController(kubeconfig, log, "--lease-namespace=default", *flags)
    try:
        controller.wait_for_log("begins")
        before, deadline = cpu_seconds(controller.pid), time.monotonic() + _SECONDS
        ask("/begin")
        while (seconds := ask("/seconds")["seconds"]) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"not all pods were served in {_SECONDS:g} s: {controller.log()}"
                )
            time.sleep(0.05)
        return {"seconds": seconds, "cpu_s": cpu_seconds(controller.pid) - before}
    finally:
        controller.kill()


def _kubeconfig(url: str, authority: Path) -> Object:
    cluster = {"server": url, "certificate-authority": str(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "stand-in",
        "contexts": [{"name": "stand-in", "context": {"cluster": "stand-in", "user": "bench"}}],
        "clusters": [{"name": "stand-in", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": "none"}}],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=2_000)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds for each write")
    parser.add_argument("--writes", type=int, nargs="*", default=[16, 32], help="in flight")
    parser.add_argument("--serve", nargs=2, metavar=("CERTIFICATE", "KEY"), help="the server alone")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(StandIn(given.nodes, given.pods, given.delay), *given.serve))
        return
    rows, figures = [], {}
    for writes in given.writes:
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(Path(folder))
            pair = authority.server("server", [IPv4Address("127.0.0.1")], [])
            sizes = [f"--{name}={getattr(given, name)}" for name in ("nodes", "pods", "delay")]
            served = [sys.executable, "-m", "bench.latency", *sizes, "--serve"]
            command = [*served, str(pair.certificate), str(pair.key)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
                assert made.stdout is not None
                try:
                    url = f"https://127.0.0.1:{made.stdout.readline().strip()}"
                    flags = [f"--writes-in-flight={writes}"]
                    found = measure(url, Path(folder), authority, flags)
                finally:
                    made.terminate()
        rate, cpu = given.pods / found["seconds"], 1000 * found["cpu_s"] / given.pods
        rows.append([writes, round(rate, 1), round(cpu, 2)])
        figures[str(writes)] = {"pods_per_s": round(rate, 1), "cpu_ms_per_pod": round(cpu, 2)}
    heading = f"{given.pods} pods, {given.nodes} nodes, {1000 * given.delay:g} ms a write"
    table(heading, ["writes in flight", "pods/s", "ms of processor time a pod"], rows)
    result(figures)


if __name__ == "__main__":
    main()
