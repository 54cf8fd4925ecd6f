"""What devices of other drivers cost a controller that names nodes.

``python -m bench.beside`` has nodes of 8 cards, 8 network interfaces as dranet publishes them, and
128 processors as dra.cpu does. Half of the cards and of the interfaces are held. It prints the
memory of the other drivers' slices and of what claims have of them, and how long a decision takes:
for a card alone, before and after these slices were listed; for a card and an interface below one
PCIe root; and for three claims, of a card, of an interface and of four processors.

Each decision is taken in as kube-scheduler would allocate it, and an earlier pod ends for it. Times
are processor time of the thread: neighbours on the machine do not count.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.published import Devices
from bench.report import percentile, result, table
from controller.allocator.packing.policy import SchedulerPolicy
from controller.cache.cache import OTHER_SLICES, ClusterCache
from controller.filter.node_filter import NodeFilter
from controller.informers.decoders import decoders
from controller.placer.outcome import Placed
from controller.placer.placer import Placer
from dra_driver.kube.api import Change
from dra_driver.kube.encode import encode
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors
from tests.control_plane.interfaces import (
    CPU,
    NET,
    card_and_interface,
    device_class,
    interface,
    other_slice,
    processor,
    request,
)
from tests.control_plane.objects import claim, pod_with

NODES_OF: Final = 1_000
DECISIONS: Final = 300
WARM_UP: Final = 30
_CARDS: Final = 8
_PROCESSORS: Final = 128
_DEVICES: Final = _CARDS + _PROCESSORS

Make = Callable[[int], Sequence[Object]]
"""The claims of the pod of that number."""


class Cluster:
    """What the controller's cache has of these nodes."""

    def __init__(self, nodes: int) -> None:
        self._draw = random.Random(nodes)
        self._decoders = decoders()
        self._held: list[Sequence[Object]] = []
        self._version = count(1)
        self.cache = ClusterCache(Selectors(), for_scheduler=True)
        numbers, allowance = self.cache.state().numbers, self.cache.state().selectors.allowance
        node_filter = NodeFilter(self.cache, numbers, allowance)
        self.placer = Placer(self.cache, node_filter, SchedulerPolicy())
        ours = Devices(DRIVER, counters=True)
        for each in (*ours.classes(), device_class(NET), device_class(CPU)):
            self.put(DEVICE_CLASSES, each)
        for number in range(nodes):
            slices = ours.slices(number)
            self.put(NODES, _node(slices[0]["spec"]["nodeName"]))
            for each in slices:
                self.put(RESOURCE_SLICES, each)
            self._hold(number, slices)

    def list_others(self) -> float:
        """The other drivers' slices are listed; returns the seconds of that."""
        decoder, spent = self._decoders[OTHER_SLICES], 0.0
        slices = []
        for name in self.cache.nodes:
            for each in (
                other_slice(name, [_interface(bus) for bus in range(_CARDS)]),
                other_slice(name, [processor(n) for n in range(_PROCESSORS)], CPU),
            ):
                text = encode(_stored(each, next(self._version)))
                started = time.thread_time()
                slices.append(decoder.decode(text))
                spent += time.thread_time() - started
        started = time.thread_time()
        list(self.cache.replace(OTHER_SLICES, slices))
        return spent + time.thread_time() - started

    def put(self, kind: Resource, obj: Object) -> None:
        text = encode(_stored(obj, next(self._version)))
        self.cache.apply(kind, Change.ADDED, self._decoders[kind].decode(text))

    def decide(self, claims: Sequence[Object]) -> float:
        """Microseconds. What was decided counts afterwards, and an earlier pod ends for it."""
        pod = _stored(pod_with("pod", "default", *[each["metadata"]["name"] for each in claims]), 1)
        given = {each["metadata"]["name"]: _stored(each, 1) for each in claims}
        started = time.thread_time_ns()
        outcome = self.placer.place(self.placer.read(pod, given))
        decided = time.thread_time_ns()
        if isinstance(outcome, Placed):
            self._take(outcome.claims(self.cache.state().classes, timestamp=""))
            ended = self._held.pop(self._draw.randrange(len(self._held)))
            for each in ended:
                self.cache.apply(RESOURCE_CLAIMS, Change.DELETED, each)
        return (decided - started) / 1_000

    def _take(self, claims: Sequence[Object]) -> None:
        for each in claims:
            self.put(RESOURCE_CLAIMS, each)
        self._held.append([_stored(each, 1) for each in claims])

    def _hold(self, number: int, slices: Sequence[Object]) -> None:
        """Half of the cards, and as many interfaces."""
        node = slices[0]["spec"]["nodeName"]
        devices = [each["name"] for part in slices for each in part["spec"].get("devices") or ()]
        whole = [name for name in devices if name.startswith("whole")]
        for at in self._draw.sample(range(_CARDS), _CARDS // 2):
            made = claim(f"held-{number}-{at}", "default")
            taken = [(DRIVER, f"{DRIVER}/{node}", whole[at]), (NET, node, _interface(at)["name"])]
            results = [
                {"request": "gcu", "driver": driver, "pool": pool, "device": name}
                for driver, pool, name in taken
            ]
            made["status"] = {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
            }
            self._take([made])


def measure(nodes: int) -> dict[str, Any]:
    """MiB and bytes a device of what is stored, and microseconds a decision."""
    cluster = Cluster(nodes)
    figures = _times("card", cluster, lambda n: [claim(f"c-{n}", "default")])
    gc.collect()
    before = _rss_bytes()
    figures["list_s"] = round(cluster.list_others(), 2)
    gc.collect()
    figures["others_mib"] = round((_rss_bytes() - before) / 2**20, 1)
    figures["bytes_per_device"] = round((_rss_bytes() - before) / nodes / _DEVICES)
    figures |= _times("card_listed", cluster, lambda n: [claim(f"d-{n}", "default")])
    figures |= _times("one_root", cluster, lambda n: [card_and_interface(f"e-{n}", "default")])
    figures |= _times("three_claims", cluster, _three_claims)
    gc.collect()
    figures["read_mib"] = round((_rss_bytes() - before) / 2**20 - figures["others_mib"], 1)
    figures["rss_peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return figures


def _times(name: str, cluster: Cluster, make: Make) -> dict[str, Any]:
    first = cluster.decide(make(-1))
    times = [cluster.decide(make(n)) for n in range(WARM_UP + DECISIONS)][WARM_UP:]
    return {
        f"{name}_first_us": round(first),
        f"{name}_p50_us": round(percentile(times, 0.5)),
        f"{name}_p99_us": round(percentile(times, 0.99)),
    }


def _three_claims(number: int) -> Sequence[Object]:
    claims = [claim(f"gcu-{number}", "default")]
    for driver, amount in ((NET, 1), (CPU, 4)):
        made = claim(f"{driver}-{number}", "default")
        made["spec"]["devices"]["requests"] = [request(driver, amount)]
        claims.append(made)
    return claims


def _interface(bus: int) -> Object:
    """Below the root of the card of that number (`bench.fleet`)."""
    return interface(bus, f"pci0000:{bus // 4:02x}")


def _node(name: str) -> Object:
    amounts = {"cpu": "256", "memory": "2Ti", "pods": "500"}
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "status": {"allocatable": amounts, "conditions": ready}}


def _stored(obj: Object, version: int) -> Object:
    metadata = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": str(version)}
    return obj | {"metadata": metadata | obj["metadata"]}


def _rss_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES_OF)
    nodes = parser.parse_args().nodes
    figures = measure(nodes)
    table(f"{nodes:,} nodes", ["", "figure"], [[name, each] for name, each in figures.items()])
    result(figures)


if __name__ == "__main__":
    main()
