"""Plays a plan on a cluster with the driver, under the auditor's eyes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.model.names import TAINTS_OF_CLAIMS
from tests.chaos.auditor import Auditor, Violation
from tests.chaos.faults import Faults
from tests.chaos.observer import Observer
from tests.chaos.plan import Arrival, Disturbance, End, Fault, Plan
from tests.chaos.workload import LABEL, Ending, Workload
from tests.cluster.errors import CommandError, WaitTimeout
from tests.cluster.fixtures import DRIVER_NAMESPACE, temporary_namespace
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import is_ready
from tests.e2e.installation import RELEASE, Installation

Object = dict[str, Any]
Tell = Callable[[str], None]

_NAMESPACE: Final = "chaos"
_ADMINISTRATORS: Final = {"resource.kubernetes.io/admin-access": "true"}
_KINDS: Final = ("v1/pods", "resource.k8s.io/v1/resourceclaims")
_TEMPLATES: Final = "resource.k8s.io/v1/resourceclaimtemplates"
_BETWEEN_LOOKS: Final = 3.0
_QUIET: Final = 300.0
"""Seconds within which all is well again: a kubelet's retry, a watch that was lost, restarts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a plan. `pods` were seen, `ran` of them were ready or completed; `missed` looks
    could not be taken, as the API server was away."""

    seconds: float
    pods: int
    ran: int
    faults: Mapping[Fault, int]
    looks: int
    missed: int
    auditor: Auditor
    left: tuple[str, ...]

    @property
    def violations(self) -> tuple[Violation, ...]:
        return self.auditor.violations


class Play:
    """One plan on one cluster, whose driver is installed."""

    def __init__(self, driver: Installation, tell: Tell) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._tell = tell
        self._observer = Observer(driver, _NAMESPACE)
        self._auditor = Auditor(self._observer.reason)
        self._faults = Faults(driver)
        self._stop = threading.Event()
        self._played: Counter[Fault] = Counter()
        self._seen: set[str] = set()
        self._ran: set[str] = set()
        self._looks = self._missed = 0

    def run(self, plan: Plan) -> Outcome:
        """Raises what went wrong with the program itself, ClusterError above all."""
        begun = time.monotonic()
        taints = self._taints()
        with temporary_namespace(self._cluster, _NAMESPACE, _ADMINISTRATORS):
            self._play(plan, begun)
            seconds = time.monotonic() - begun
            self._tell("no more faults: what fits has to run")
            self._settle()
            self._tell("all ends: nothing may be left")
            left = [*self._drain(), *self._changed(taints)]
        return Outcome(
            seconds=seconds,
            pods=len(self._seen),
            ran=len(self._ran),
            faults=self._played,
            looks=self._looks,
            missed=self._missed,
            auditor=self._auditor,
            left=tuple(left),
        )

    def _play(self, plan: Plan, begun: float) -> None:
        with ThreadPoolExecutor(3) as pool:
            playing = [
                pool.submit(self._churn, plan, begun),
                pool.submit(self._disturb, plan, begun),
            ]
            audit = pool.submit(self._audit, playing)
            wait([*playing, audit], return_when=FIRST_EXCEPTION)
            self._stop.set()
            for each in (*playing, audit):
                each.result()

    def _until(self, at: float) -> bool:
        """Wait for that time; whether to go on."""
        return not self._stop.wait(max(0.0, at - time.monotonic()))

    def _churn(self, plan: Plan, begun: float) -> None:
        for step in plan.churn:
            if not self._until(begun + step.at):
                return
            self._tell(str(step))
            # As a user would who is refused: again.
            wait_until(
                lambda: self._do(step),  # noqa: B023
                PATIENCE,
                str(step),
                retry_on=(CommandError,),
                interval=1.0,
            )

    def _do(self, step: Arrival | End) -> bool:
        if isinstance(step, Arrival):
            self._cluster.apply(*step.workload.objects(_NAMESPACE))
        else:
            self._end(step.workload)
        return True

    def _end(self, workload: Workload) -> None:
        force = {"gracePeriodSeconds": 0} if workload.ending is Ending.BY_FORCE else {}
        for kinds in (*_KINDS, _TEMPLATES):
            path = f"{_path(kinds)}?labelSelector={LABEL}%3D{workload.name}"
            self._cluster.call("DELETE", path, force if kinds == _KINDS[0] else None)

    def _disturb(self, plan: Plan, begun: float) -> None:
        lasting: dict[Disturbance, ExitStack] = {}
        with ExitStack() as at_last:
            for at, disturbance in _edges(plan):
                if not self._until(begun + at):
                    return
                if disturbance in lasting:
                    lasting.pop(disturbance).close()
                    continue
                stack = lasting[disturbance] = at_last.enter_context(ExitStack())
                hit = stack.enter_context(self._faults.of(disturbance))
                self._tell(f"{disturbance}: {hit or 'nothing to hit'}")
                self._played[disturbance.fault] += bool(hit)

    def _audit(self, playing: Iterable[Future[None]]) -> None:
        while not all(each.done() for each in playing):
            self._judge()
            self._stop.wait(_BETWEEN_LOOKS)

    def _judge(self) -> None:
        try:
            first, second = self._observer.look(), self._observer.look()
            before = len(self._auditor.violations)
            self._auditor.judge(first, second)
            for about, text in self._observer.ended():
                self._auditor.add_ended(about, text)
        except CommandError:
            self._missed += 1
            return
        self._looks += 1
        self._seen |= second.pods.keys()
        self._ran |= {
            uid
            for uid, pod in second.pods.items()
            if is_ready(pod) or pod["status"]["phase"] == "Succeeded"
        }
        for violation in self._auditor.violations[before:]:
            self._tell(f"VIOLATION {violation.kind}: {violation.text}")

    def _settle(self) -> None:
        """Return when every pod that fits runs. What does not come to rest is a violation."""
        self._cluster.wait_ready()
        scope = f"--namespace={DRIVER_NAMESPACE}"
        controller = f"deployment/{RELEASE}-controller"
        self._cluster.wait("rollout", "status", scope, controller)
        self._driver.wait_for_agents()

        def settled() -> bool:
            self._judge()
            return not self._auditor.unsettled(self._observer.look())

        with suppress(WaitTimeout):
            wait_until(settled, _QUIET, "rest", retry_on=(CommandError,), interval=2.0)
        self._auditor.judge_rest(self._observer.look())

    def _drain(self) -> Iterator[str]:
        """End everything; gives what is left in spite of that."""
        for kinds in (*_KINDS, _TEMPLATES):
            self._cluster.call("DELETE", _path(kinds))
        with suppress(WaitTimeout):
            wait_until(lambda: not list(self._observer.left()), PATIENCE, "nothing", interval=1.0)
        yield from self._observer.left()

    def _taints(self) -> dict[tuple[str, str], set[str]]:
        return {
            (node, device["name"]): {taint["key"] for taint in device.get("taints", ())}
            - TAINTS_OF_CLAIMS
            for node in self._driver.machines
            for device in self._driver.devices(node)
        }

    def _changed(self, before: Mapping[tuple[str, str], set[str]]) -> Iterator[str]:
        with suppress(WaitTimeout):
            wait_until(lambda: not list(self._differ(before)), PATIENCE, "the first devices")
        yield from self._differ(before)

    def _differ(self, before: Mapping[tuple[str, str], set[str]]) -> Iterator[str]:
        """A device may be published only after `before`, as another program allocates now."""
        after = self._taints()
        for device in sorted(before.keys() | after.keys()):
            if before.get(device, set()) != after.get(device):
                yield f"device {device}: taints {before.get(device)}, now {after.get(device)}"


def _edges(plan: Plan) -> list[tuple[float, Disturbance]]:
    """Each disturbance twice, at its begin and at its end, by time."""
    edges = [
        edge
        for each in plan.disturbances
        for edge in ((each.at, each), (each.at + each.seconds, each))
    ]
    return sorted(edges, key=lambda edge: edge[0])


def _path(kinds: str) -> str:
    group, _, kind = kinds.rpartition("/")
    prefix = "/apis" if "/" in group else "/api"
    return f"{prefix}/{group}/namespaces/{_NAMESPACE}/{kind}"
