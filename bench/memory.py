"""What the controller takes of a large cluster's lists, read page by page as its reflectors do.

``python -m bench.memory`` decodes lists of 5,000 slices of 24 devices, 5,000 nodes, 40,000 claims,
their 40,000 pods and 50,000 pods without claims (`bench.lists`) as the controller does, puts them
into the cache, decides until the allocator's tables are filled, and lists the versions of the
claims, as a new leader does. `start_s` is the CPU time up to the first decision of each shape.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import time
from pathlib import Path
from typing import Any

from bench import fleet, lists
from bench.report import result, table
from bench.shapes import SHAPES
from controller.allocator.allocate import allocate
from controller.allocator.claim_request import parse_claim
from controller.cache.cache import ClusterCache
from controller.informers.decoders import decoders
from controller.reconcile.fence_previous_leader import VERSIONS
from dra_driver.kube.decode import Decoder, decode_page
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors
from dra_driver.util.collection import no_collection

_DECISIONS = 20  # of each shape


class Reader:
    """Reads lists, and has in `spent` the seconds of CPU time that it took."""

    def __init__(self) -> None:
        self.spent = 0.0

    def read(
        self, kind: Resource, nodes: int, decoder: Decoder, *, others: bool = False
    ) -> list[Object]:
        found: list[Object] = []
        for page in lists.pages(lists.OTHER_PODS if others else kind.plural, nodes):
            started = time.thread_time()
            with no_collection():
                items, _ = decode_page(page, decoder)
                for item in items:
                    if isinstance(item, dict):
                        item |= {"apiVersion": kind.api_version, "kind": kind.kind}
                found += items
            self.spent += time.thread_time() - started
        return found


def measure(nodes: int) -> dict[str, Any]:
    """Prints MiB after each kind of object; gives MiB at the end and at most, and seconds."""
    cache, known, reader, rows = ClusterCache(Selectors()), decoders(), Reader(), []
    classes = fleet.classes().items()
    cache.replace(
        DEVICE_CLASSES, [e | {"metadata": e["metadata"] | {"uid": name}} for name, e in classes]
    )
    empty = before = _rss_mib()
    for kind in (RESOURCE_SLICES, NODES, RESOURCE_CLAIMS, PODS):
        items = reader.read(kind, nodes, known[kind])
        if kind is PODS:
            rows.append(["pods that use claims, listed", len(items), _rss_mib() - before])
            before, ours = _rss_mib(), len(items)
            items += reader.read(kind, nodes, known[kind], others=True)
            rows.append(["other pods, listed", len(items) - ours, _rss_mib() - before])
            before = _rss_mib()
        started = time.thread_time()
        with no_collection():
            cache.replace(kind, items)
        cache.state().fleet.refresh()
        reader.spent += time.thread_time() - started
        rows.append([kind.plural, len(items), _rss_mib() - before])
        del items
        before = _rss_mib()
    started = time.thread_time()
    _decide(cache, 1)
    spent = reader.spent + time.thread_time() - started
    _decide(cache, _DECISIONS)
    rows.append(["decisions", _DECISIONS * len(SHAPES), _rss_mib() - before])
    reader.read(RESOURCE_CLAIMS, nodes, VERSIONS)
    gc.collect()
    table("Kept, in MiB", ["", "objects", "RSS"], [["the program", "", empty], *rows])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"rss_mib": _rss_mib(), "rss_peak_mib": peak, "start_s": round(spent, 1)}


def _decide(cache: ClusterCache, times: int) -> None:
    state, draw = cache.state(), random.Random(0)
    nodes = state.numbers.set_of(cache.nodes)
    for make in SHAPES.values():
        for _ in range(times):
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
