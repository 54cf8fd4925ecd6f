"""How long a real control plane takes for pods that all come at once, each with a claim for a card.

Pods and claims are made while kube-scheduler and the controller are stopped (SIGSTOP); the time
runs from when they go on to the last binding and the last allocation, as a watch reports them.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import fleet
from bench.fleet import Object
from bench.published import Devices, for_all
from dra_driver.kube.api import Change
from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import allocation
from dra_driver.model.names import SCHEDULING_GATE
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from tests.control_plane.controller_process import MeasuredController
from tests.control_plane.objects import pod_with

NAMESPACE = "default"
SECONDS = 300.0  # after which a run is given up
SCHEDULER = "kube-scheduler"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Scenario:
    """How devices are given: by our controller or by kube-scheduler itself, to pods with the gate
    or without it, with kube-scheduler at work or stopped all the time. `ours`: the controller runs,
    with these `flags`."""

    devices: Devices
    ours: bool
    flags: tuple[str, ...] = ()
    gated: bool = False
    scheduled: bool = True


@dataclass(frozen=True, slots=True)
class Rates:
    """In a second; no pod is bound while kube-scheduler is stopped. `cpu` is the processor time
    that each program took, in seconds; `followed` the share of pods that were bound to the node
    that the controller named, None if it named none."""

    claims: float
    pods: float
    cpu: Mapping[str, float]
    followed: float | None = None

    def figures(self) -> Object:
        return {
            "claims_allocated_per_s": round(self.claims, 1),
            "pods_bound_per_s": round(self.pods, 1),
            "cpu_s": {name: round(used, 1) for name, used in self.cpu.items()},
            "followed": self.followed,
        }


class Seen:
    """When each object was done. The API server ends watches while it is busy; the reflector goes
    on where the watch ended."""

    def __init__(self, api: Client, resource: Resource, is_done: Callable[[Object], bool]) -> None:
        self._is_done = is_done
        self._at: dict[str, float] = {}
        self._more = threading.Condition()
        self._reflector = Reflector(api, resource, self, namespace=NAMESPACE)
        self._reflector.start()
        if not self._reflector.synced.wait(SECONDS):
            raise TimeoutError(f"{resource.plural} could not be listed in {SECONDS:g} s")

    def last(self, count: int) -> float:
        """The time at which so many were done. Raises TimeoutError."""
        with self._more:
            if not self._more.wait_for(lambda: len(self._at) >= count, SECONDS):
                raise TimeoutError(f"{len(self._at)} of {count} were done in {SECONDS:g} s")
        return max(self._at.values())

    def close(self) -> None:
        self._reflector.stop(10.0)

    def on_replace(self, items: Sequence[Object]) -> None:
        for each in items:
            self.on_event(Change.ADDED, each)

    def on_event(self, _change: Change, obj: Object) -> None:
        if self._is_done(obj):
            with self._more:
                self._at.setdefault(obj["metadata"]["name"], time.monotonic())
                self._more.notify()


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _is_allocated(claim: Object) -> bool:
    return allocation(claim) is not None


class Bursts:
    """`flags` are the controller's."""

    def __init__(self, cluster: Cluster, api: Client, *flags: str) -> None:
        self._cluster = cluster
        self._api = api
        self._flags = flags

    def run(self, scenario: Scenario, count: int) -> Rates:
        """So many pods at once. Nothing is left of them. Raises TimeoutError."""
        with self._controller(scenario) as controller:
            self._signal(controller, signal.SIGSTOP)
            names = [f"user-{number}" for number in range(count)]
            for_all(lambda name: self._start(name, scenario), names)
            with (
                closing(Seen(self._api, PODS, _is_bound)) as bound,
                closing(Seen(self._api, RESOURCE_CLAIMS, _is_allocated)) as allocated,
            ):
                before, begun = self._cpu(controller), time.monotonic()
                self._signal(controller, signal.SIGCONT, scheduler=scenario.scheduled)
                try:
                    claims = count / (allocated.last(count) - begun)
                    pods = count / (bound.last(count) - begun) if scenario.scheduled else 0.0
                    after = self._cpu(controller)
                    followed = _followed(controller)
                finally:
                    self._signal(controller, signal.SIGCONT)
        self._end_all()
        cpu = {name: used - before[name] for name, used in after.items()}
        return Rates(claims, pods, cpu, followed)

    def _start(self, name: str, scenario: Scenario) -> None:
        wanted = fleet.request("whole")
        wanted["exactly"]["deviceClassName"] = scenario.devices.device_class
        metadata = {"name": name, "namespace": NAMESPACE}
        claim = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": metadata,
            "spec": {"devices": {"requests": [wanted]}},
        }
        self._api.create(RESOURCE_CLAIMS, claim)
        gates = [{"name": SCHEDULING_GATE}] if scenario.gated else []
        self._api.create(PODS, pod_with(name, NAMESPACE, name, schedulingGates=gates))

    def _end_all(self) -> None:
        """Without a kubelet: pods at once, and then kube-controller-manager frees the claims."""
        names = [
            each["metadata"]["name"] for each in self._api.list(PODS, namespace=NAMESPACE).items
        ]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0"
        self._cluster.kubectl("delete", f"--raw={path}")
        for_all(lambda name: self._api.delete(RESOURCE_CLAIMS, name, namespace=NAMESPACE), names)
        wait_until(
            lambda: not self._api.list(RESOURCE_CLAIMS, namespace=NAMESPACE).items,
            600.0,
            "the claims gone",
            interval=0.2,
        )

    def _signal(
        self,
        controller: MeasuredController | None,
        number: signal.Signals,
        *,
        scheduler: bool = True,
    ) -> None:
        if controller is not None:
            controller.signal(number)
        if scheduler:
            self._cluster.processes.get(SCHEDULER).send(number)

    def _cpu(self, controller: MeasuredController | None) -> dict[str, float]:
        programs = (SCHEDULER, "kube-apiserver", "etcd")
        used = {name: cpu_seconds(self._cluster.processes.get(name).pid) for name in programs}
        if controller is not None:
            used["controller"] = cpu_seconds(controller.pid)
        return used

    @contextmanager
    def _controller(self, scenario: Scenario) -> Iterator[MeasuredController | None]:
        """Ours, with a lease that outlives the time in which it is stopped."""
        if not scenario.ours:
            yield None
            return
        with TemporaryDirectory() as folder:
            process = MeasuredController(
                self._cluster.kubeconfig,
                Path(folder) / "log",
                "--lease-duration=600",
                "--lease-renew-deadline=590",
                *self._flags,
                *scenario.flags,
            )
            try:
                process.wait_for_log("begins")
                yield process
            finally:
                process.end()


def _followed(controller: MeasuredController | None) -> float | None:
    if controller is None:
        return None
    _, text = controller.probe("/metrics")
    counts = [
        float(line.rpartition(" ")[2])
        for followed in ("true", "false")
        for line in text.splitlines()
        if line.startswith(f'gcu_controller_nominated_pods_bound_total{{followed="{followed}"}}')
    ]
    return counts[0] / sum(counts) if sum(counts) else None


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far."""
    _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / _TICKS
