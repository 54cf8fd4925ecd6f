"""How long the controller does nothing after the API server was killed in the midst of its work.

Two controllers, with the rights of the chart, and so many pods that wait for a card each. When the
first pod is served, the API server is killed; after a while it is started again. Counted from when
it says that it is ready: when the first of the other pods is served (its claim is allocated, or its
node is named), when all are, and when all are bound. `new` is a pod that is made at that time, of
which the controller hears by its watches alone, until it is served; `kube-scheduler alone` is one
without a claim, until it is bound. Nodes are objects without kubelets (root).
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.report import result, say, table
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pod
from tests.control_plane.cards import in_all_modes
from tests.control_plane.components import away
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver
from tests.control_plane.hands import Hands
from tests.control_plane.machines import Machines
from tests.control_plane.nominating import GATES
from tests.control_plane.objects import claim, pod_with

ALLOCATORS: Final = ("controller", "scheduler")
_CARDS: Final = 6  # of a node
_PATIENCE: Final = 180.0
_EVERY: Final = 0.05
_ALONE: Final = "alone"
_NEW: Final = "new"


@dataclass(frozen=True, slots=True)
class Return:
    """Seconds from when the API server was ready."""

    alone: float
    new: float
    first: float
    served: float
    bound: float


@dataclass(frozen=True, slots=True)
class Scene:
    """One control plane with the chart, and what acts on it."""

    cluster: Cluster
    api: Client
    driver: Driver
    folder: Path

    def measure(self, allocator: str, seconds: float, pods: int) -> Return:
        """One fault of so many seconds, in a namespace of its own."""
        namespace = f"restart-{secrets.token_hex(3)}"
        self.cluster.kubectl("create", "namespace", namespace)
        machines = Machines(self.cluster, self.api)
        try:
            devices = in_all_modes(*range(_CARDS), allocator=allocator)
            for _ in range(pods // _CARDS + 1):
                machines.add(devices)
            with self._controllers(allocator) as controllers:
                self._fill(controllers, namespace, pods)
                self._kill(seconds, lambda: bool(self._served(allocator, namespace)))
                return self._return(allocator, namespace, pods)
        finally:
            Hands(self.cluster, self.api, namespace).end_all()
            machines.remove_all()

    @contextmanager
    def _controllers(self, allocator: str) -> Iterator[list[ControllerProcess]]:
        kubeconfig = self.driver.kubeconfig("controller", self.folder / "kubeconfig")
        with ExitStack() as at_end:
            started = []
            for number in range(2):
                replica = ControllerProcess(
                    kubeconfig,
                    self.folder / f"{secrets.token_hex(3)}.log",
                    f"--allocator={allocator}",
                    f"--lease-namespace={DRIVER_NAMESPACE}",
                    name=f"replica-{number}",
                )
                at_end.callback(replica.end)
                started.append(replica)
            wait_until(
                lambda: any("begins" in each.log() for each in started), _PATIENCE, "a leader"
            )
            yield started

    def _fill(self, controllers: Iterable[ControllerProcess], namespace: str, pods: int) -> None:
        """The pods, made while no controller looks."""
        for each in controllers:
            each.suspend()
        for number in range(pods):
            self._make(f"pod-{number}", namespace)
        for each in controllers:
            each.signal(signal.SIGCONT)

    def _make(self, name: str, namespace: str) -> None:
        """A pod that waits for a card."""
        self.api.create(RESOURCE_CLAIMS, claim(name, namespace))
        self.api.create(PODS, pod_with(name, namespace, name, schedulingGates=GATES))

    def _kill(self, seconds: float, begun: Callable[[], bool]) -> None:
        """The API server, once the first pod is served; returns when it is ready again."""
        wait_until(begun, _PATIENCE, "the first pod served", interval=0.01)
        with away(self.cluster, "kube-apiserver"):
            time.sleep(seconds)
        wait_until(
            lambda: self.cluster.kubectl("get", "--raw=/readyz"),
            _PATIENCE,
            "the API server",
            retry_on=(CommandError,),
            interval=_EVERY,
        )

    def _return(self, allocator: str, namespace: str, pods: int) -> Return:
        begun = time.monotonic()
        before = len(self._served(allocator, namespace))
        self.api.create(PODS, pod(_ALONE, namespace))
        self._make(_NEW, namespace)
        times: dict[str, float] = {}

        def all_seen() -> bool:
            now = time.monotonic() - begun
            served, bound = self._served(allocator, namespace), self._bound(namespace)
            seen = {
                "alone": _ALONE in bound,
                "new": _NEW in served,
                "first": len(served - {_NEW}) > before or before == pods,
                "served": len(served) == pods + 1,
                "bound": len(bound - {_ALONE}) == pods + 1,
            }
            for what, is_seen in seen.items():
                if is_seen:
                    times.setdefault(what, round(now, 1))
            return len(times) == len(seen)

        wait_until(all_seen, _PATIENCE, "all bound", retry_on=(KubeError,), interval=_EVERY)
        say(f"{allocator}: {before} of {pods} were served; {times}")
        return Return(**times)

    def _served(self, allocator: str, namespace: str) -> set[str]:
        if allocator == "controller":
            claims = self.api.list(RESOURCE_CLAIMS, namespace=namespace).items
            return {each["metadata"]["name"] for each in claims if allocation(each)}
        ungated = (
            each for each in self._pods(namespace) if not each["spec"].get("schedulingGates")
        )
        return {each["metadata"]["name"] for each in ungated} - {_ALONE}

    def _bound(self, namespace: str) -> set[str]:
        pods = self._pods(namespace)
        return {each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")}

    def _pods(self, namespace: str) -> tuple[dict[str, Any], ...]:
        return self.api.list(PODS, namespace=namespace).items


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.restart", description=__doc__)
    parser.add_argument("--away", type=float, nargs="*", default=[1.0, 10.0, 30.0])
    parser.add_argument("--pods", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--allocators", nargs="*", choices=ALLOCATORS, default=list(ALLOCATORS))
    chosen = parser.parse_args()
    settings = Settings(f"bench-{os.getpid()}", kubernetes=chosen_with_dra(), keep_nodes_ready=True)
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        with TemporaryDirectory() as folder:
            found = _measured(cluster, Path(folder), chosen)
    finally:
        cluster.down()
    rows = [
        (allocator, seconds, *(_text(returns, what) for what in Return.__slots__))
        for (allocator, seconds), returns in found.items()
    ]
    table(
        f"{chosen.pods} pods; seconds from the API server's return, median (longest)",
        ["allocator", "away, s", "kube-scheduler alone", "new", "first", "all served", "all bound"],
        rows,
    )
    result(
        {
            f"{allocator}, {seconds:g} s": [asdict(each) for each in returns]
            for (allocator, seconds), returns in found.items()
        }
    )


def _measured(
    cluster: Cluster, folder: Path, chosen: argparse.Namespace
) -> dict[tuple[str, float], list[Return]]:
    api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
    driver = Driver.install(cluster)
    scene = Scene(cluster, api, driver, folder)
    found: dict[tuple[str, float], list[Return]] = {}
    for allocator in chosen.allocators:
        version = cluster.release.version
        with driver.changed(allocator=allocator, schedulerVersion=version):
            for seconds in chosen.away:
                found[allocator, seconds] = [
                    scene.measure(allocator, seconds, chosen.pods) for _ in range(chosen.rounds)
                ]
    return found


def _text(returns: Iterable[Return], what: str) -> str:
    values = [getattr(each, what) for each in returns]
    return f"{statistics.median(values):.1f} ({max(values):.1f})"


if __name__ == "__main__":
    main()
