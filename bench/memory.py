"""Memory and CPU time of the controller from the lists of a large cluster to its first decisions.

``python -m bench.memory`` decodes lists of 5,000 slices of 24 devices, 5,000 nodes, 40,000 claims,
their 40,000 pods and 50,000 pods without claims (`bench.lists`) page by page, as the reflectors do,
and gives them to the deciding thread. That becomes the leader (it lists the versions of all
claims), makes the steps that are due, and decides on each shape of claim. `start_s` is the CPU time
up to the first decision of each shape.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from prometheus_client import CollectorRegistry

from bench import fleet, lists
from bench.report import result, table
from bench.shapes import SHAPES
from controller.allocator.allocate import allocate
from controller.allocator.claim_request import parse_claim
from controller.app import new_worker
from controller.cache.cache import WATCHED, ClusterCache
from controller.informers.decoders import decoders
from controller.leaderelection.fence import Fence
from controller.queue.event_queue import EventQueue, Replaced
from controller.settings import ControllerSettings
from dra_driver.kube.api import Api, Listing, ServerVersion
from dra_driver.kube.decode import Decoder, decode_page
from dra_driver.kube.events import Recorder
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors
from dra_driver.util.collection import no_collection

_DECISIONS: Final = 20  # of each shape
_SECONDS: Final = 60.0  # a decision is measured to its end, however busy the machine is
_LISTED: Final = frozenset({RESOURCE_SLICES, NODES, RESOURCE_CLAIMS, PODS})


class Server:
    """An API server that lists, and is never written to. `spent` is the CPU time, in seconds, in
    which its lists were decoded."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self.spent = 0.0

    def read(self, plural: str, decoder: Decoder) -> list[Object]:
        found: list[Object] = []
        for page in lists.pages(plural, self._nodes):
            started = time.thread_time()
            with no_collection():
                found += decode_page(page, decoder)[0]
            self.spent += time.thread_time() - started
        return found

    def list_metadata(self, kind: Resource, *, decoder: Decoder) -> Listing:
        return Listing(tuple(self.read(kind.plural, decoder)), "1")

    def server_version(self) -> ServerVersion:
        raise AssertionError("nothing is written")


def measure(nodes: int) -> dict[str, Any]:
    """Prints MiB after each kind of object. Returns MiB at the end and at most, and seconds."""
    server, known, rows = Server(nodes), decoders(), []
    events, fence = EventQueue(time.monotonic), Fence(time.monotonic)
    worker, context = new_worker(
        ControllerSettings(),
        cast("Api", server),
        CollectorRegistry(),
        recorder=cast("Recorder", None),  # nothing is reported
        pool=ThreadPoolExecutor(),
        events=events,
        fence=fence,
        selectors=Selectors(Allowance(time.monotonic)),
        clock=time.monotonic,
        now=lambda: datetime.now(UTC),
        draw=lambda: 0.0,
    )
    empty = before = _rss_mib()
    working = 0.0
    for kind in WATCHED:
        items: list[Object] = []
        if kind is DEVICE_CLASSES:
            items = [
                each | {"metadata": each["metadata"] | {"uid": name, "resourceVersion": "1"}}
                for name, each in fleet.classes().items()
            ]
        elif kind in _LISTED:
            items = server.read(kind.plural, known[kind])
        if kind is PODS:
            items += server.read(lists.OTHER_PODS, known[kind])
            rows.append(["pods, listed", len(items), _rss_mib() - before])
            before = _rss_mib()
        events.put(Replaced(kind, items))
        count = len(items)
        del items
        started = time.thread_time()
        worker.run_once(0.0)
        working += time.thread_time() - started
        rows += [[kind.plural, count, _rss_mib() - before]] if count else []
        before = _rss_mib()
    fence.open_until(float("inf"), "1")
    decoded, started = server.spent, time.thread_time()
    while worker.next_wakeup() == 0.0:
        worker.run_once(0.0)
    _decide(context.cache, 1)
    start = time.thread_time() - started + working + decoded
    rows.append(["the leader's first steps", "", _rss_mib() - before])
    _decide(context.cache, _DECISIONS)
    gc.collect()
    table("Kept, in MiB", ["", "objects", "RSS"], [["the program", "", empty], *rows])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"rss_mib": _rss_mib(), "rss_peak_mib": peak, "start_s": round(start, 1)}


def _decide(cache: ClusterCache, times: int) -> None:
    state, draw = cache.state(), random.Random(0)
    nodes = state.numbers.set_of(cache.nodes)
    for make in SHAPES.values():
        for _ in range(times):
            state.selectors.allowance.begin(_SECONDS)
            allocate(state, [parse_claim(make(draw), state.classes)], nodes)


def _rss_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() // 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    result(measure(parser.parse_args().nodes))


if __name__ == "__main__":
    main()
