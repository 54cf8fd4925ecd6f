"""The programs of a real control plane and our controller beside it: started, stopped, measured."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.scenarios import Scenario
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from tests.control_plane.controller_process import MeasuredController

SCHEDULER: Final = "kube-scheduler"
CONTROLLER: Final = "controller"
SECONDS: Final = 1800.0
"""After so long a measurement is given up."""

UNLIMITED: Final = {
    SCHEDULER: ("--kube-api-qps=5000", "--kube-api-burst=5000"),
    "kube-apiserver": ("--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"),
    "kube-controller-manager": ("--kube-api-qps=5000", "--kube-api-burst=5000"),
}
"""Flags of a control plane: no program's own limit of calls a second is measured."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SERVER: Final = (SCHEDULER, "kube-apiserver", "etcd")
_IDLE: Final = 0.05
"""Processors: kube-scheduler and a controller at rest use less of one."""
_QUIET: Final = 1.0  # seconds
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE"})
_COUNTED: Final = re.compile(r"apiserver_request_total\{(.*)\} (\S+)$")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_NOBODYS: Final = frozenset({"leases"})
"""Resources that are written whether there are pods or not."""


def writes(metrics: str) -> Counter[str]:
    """How often ``<verb> <resource>[/<subresource>]`` was sent to the API server, also in vain, as
    its metrics say."""
    counted = Counter[str]()
    for line in metrics.splitlines():
        if not (match := _COUNTED.match(line)):
            continue
        labels = dict(_LABEL.findall(match[1]))
        if labels["verb"] in _WRITES and labels["resource"] not in _NOBODYS:
            parts = filter(None, (labels["resource"], labels["subresource"]))
            counted[f"{labels['verb']} {'/'.join(parts)}"] += int(float(match[2]))
    return counted


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far."""
    _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / _TICKS


@dataclass(frozen=True, slots=True)
class Programs:
    """At work in one scenario; `controller` is None if none runs."""

    cluster: Cluster
    controller: MeasuredController | None

    def stop(self) -> None:
        """SIGSTOP: pods and claims are made meanwhile."""
        self._signal(signal.SIGSTOP)

    def go_on(self, *, scheduler: bool = True) -> None:
        """SIGCONT; kube-scheduler may stay stopped."""
        self._signal(signal.SIGCONT, scheduler=scheduler)

    def cpu(self) -> Mapping[str, float]:
        """The processor time of each program so far, in seconds."""
        used = {name: cpu_seconds(self.cluster.processes.get(name).pid) for name in _SERVER}
        if self.controller is not None:
            used[CONTROLLER] = cpu_seconds(self.controller.pid)
        return used

    def writes(self) -> Counter[str]:
        return writes(self.cluster.kubectl("get", "--raw=/metrics"))

    def wait_quiet(self) -> None:
        """Return when kube-scheduler and the controller have nothing to do. Raises WaitTimeout."""
        since, used = time.monotonic(), self._deciding()

        def is_quiet() -> bool:
            nonlocal since, used
            now, before = time.monotonic(), used
            if now - since < _QUIET:
                return False
            used, elapsed, since = self._deciding(), now - since, now
            return (used - before) / elapsed < _IDLE

        wait_until(is_quiet, SECONDS, "programs at rest")

    def followed(self) -> float | None:
        """The share of pods that were bound to the node that the controller named; None if it
        named none."""
        if self.controller is None:
            return None
        _, text = self.controller.probe("/metrics")
        name = "gcu_controller_nominated_pods_bound_total"
        counts = [
            float(line.rpartition(" ")[2])
            for followed in ("true", "false")
            for line in text.splitlines()
            if line.startswith(f'{name}{{followed="{followed}"}}')
        ]
        return counts[0] / sum(counts) if sum(counts) else None

    def _deciding(self) -> float:
        used = self.cpu()
        return used[SCHEDULER] + used.get(CONTROLLER, 0.0)

    def _signal(self, number: signal.Signals, *, scheduler: bool = True) -> None:
        if self.controller is not None:
            self.controller.signal(number)
        if scheduler:
            self.cluster.processes.get(SCHEDULER).send(number)


@contextmanager
def running(cluster: Cluster, scenario: Scenario, *flags: str) -> Iterator[Programs]:
    """The scenario's programs, at rest; `flags` are the controller's. Its lease outlives the time
    in which it is stopped."""
    if not scenario.ours:
        programs = Programs(cluster, None)
        programs.wait_quiet()
        yield programs
        return
    with TemporaryDirectory() as folder:
        controller = MeasuredController(
            cluster.kubeconfig,
            Path(folder) / "log",
            "--lease-duration=600",
            "--lease-renew-deadline=590",
            *flags,
            *scenario.flags,
        )
        try:
            controller.wait_for_log("begins")
            programs = Programs(cluster, controller)
            programs.wait_quiet()
            yield programs
        finally:
            controller.end()
