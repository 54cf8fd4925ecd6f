"""What users would notice of the driver's parts being replaced, seen from outside all the while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dra_driver.kube.api import Change
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import PODS, RESOURCE_SLICES
from dra_driver.model.effects import Effects
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import CARDS, Installation
from tests.e2e.manifests import claim_in, pod_with

Object = dict[str, Any]
_EVERY = 0.1


@dataclass
class Seen:
    """`gaps` are changes after which a node's cards were not all published. `starts` are the
    seconds that pods took from their creation to being ready, by node. `unknown` is by pod the
    longest time in seconds for which its status did not say that its card is well."""

    gaps: list[str] = field(default_factory=list)
    starts: dict[str, list[float]] = field(default_factory=dict)
    unknown: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        slowest = {node: f"{max(each):.1f} s of {len(each)}" for node, each in self.starts.items()}
        unknown = {pod: f"{each:.1f} s" for pod, each in self.unknown.items()}
        return f"slowest start of a pod: {slowest}; health not told: {unknown}"


@contextmanager
def watching(driver: Installation, namespace: str, pods: Sequence[str]) -> Iterator[Seen]:
    """Within it the slices are watched, each node starts one small pod after the other, and the
    health of the cards of `pods` is looked at. What goes wrong with that is raised at the end."""
    seen = Seen()
    api = connect(driver.cluster.kubeconfig, effects=Effects(), user_agent="tests/1")
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by who watches
            failures.append(error)

    listing = api.list(RESOURCE_SLICES, field_selector=f"spec.driver={DRIVER}")
    watch = api.watch(
        RESOURCE_SLICES,
        resource_version=listing.resource_version,
        field_selector=f"spec.driver={DRIVER}",
    )
    works = [
        partial(_watch_slices, driver, iter(watch), seen),
        *(partial(_start_pods, driver, namespace, node, stop, seen) for node in driver.machines),
        *(partial(_look_at_health, api, namespace, pod, stop, seen) for pod in pods),
    ]
    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        stop.set()
        watch.close()
        for thread in threads:
            thread.join(120)
        api.close()
    if failures:
        raise failures[0]


def _watch_slices(driver: Installation, events: Iterator[Any], seen: Seen) -> None:
    for event in events:
        if event.change is Change.BOOKMARK:
            continue
        spec = event.object["spec"]
        node, devices = spec["nodeName"], len(spec.get("devices", ()))
        if event.change is Change.DELETED or devices != len(Mode) * CARDS[driver.machines[node]]:
            seen.gaps.append(f"{event.change} slice of {node} with {devices} devices")


def _start_pods(
    driver: Installation, namespace: str, node: str, stop: threading.Event, seen: Seen
) -> None:
    starts = seen.starts.setdefault(node, [])
    scope = f"--namespace={namespace}"
    while not stop.is_set():
        name = f"{node}-{len(starts)}"
        selector = {"kubernetes.io/hostname": node}
        begin = time.monotonic()
        driver.cluster.apply(
            claim_in(Mode.SHARED, name, namespace, 1),
            pod_with(name, namespace, nodeSelector=selector),
        )
        wait_for_pods(driver.cluster, namespace, name)
        starts.append(time.monotonic() - begin)
        driver.cluster.kubectl("delete", "pod", name, scope)


def _look_at_health(
    api: Client, namespace: str, pod: str, stop: threading.Event, seen: Seen
) -> None:
    seen.unknown[pod] = 0.0
    well_at = time.monotonic()
    while not stop.wait(_EVERY):
        now = time.monotonic()
        if _is_well(api.get(PODS, pod, namespace=namespace)):
            well_at = now
        seen.unknown[pod] = max(seen.unknown[pod], now - well_at)


def _is_well(pod: Object) -> bool:
    [container] = pod["status"]["containerStatuses"]
    states = [
        resource["health"]
        for status in container.get("allocatedResourcesStatus", ())
        for resource in status["resources"]
    ]
    return bool(states) and set(states) == {"Healthy"}
