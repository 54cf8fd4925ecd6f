"""Plays a kill of the agent in Allocate on a node of a real cluster, and judges what is left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from dra_driver.model.mode import Mode
from tests.cluster.errors import WaitTimeout
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.by_limits import DRS, SHARED, WHOLE
from tests.e2e.killable import KillableAgent
from tests.e2e.node_records import Records, recorded
from tests.e2e.without_dra import OldInstallation, asking
from tests.kill.cells import Cell
from tests.kill.grants import Kind
from tests.kill.moments import Moment, moments

Object = dict[str, Any]

LIMITS: Final[Mapping[Kind, Mapping[str, int]]] = MappingProxyType(
    {
        Kind.WHOLE: MappingProxyType({WHOLE: 1}),
        Kind.SHARED: MappingProxyType({SHARED: 2}),
        Kind.DRS: MappingProxyType({DRS: 6}),
        Kind.DRS_BESIDE: MappingProxyType({DRS: 3}),
    }
)
"""What the container asks for in whose Allocate the agent is killed; the instance of another pod
leaves room for the last of them on its card."""

_COMES = 45.0
_QUIET = 1.0
_REGISTER = "after plugin.register"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a kill. `reached`: the agent came to the moment, and was killed there.
    `refused` is what the kubelet said of the Deployment's pods that failed. Seconds are from the
    kill on: `agent` until its container ran again, `pod` until a pod ran with what it asks for,
    `rest` until that and nothing else was on record."""

    reached: bool
    refused: tuple[str, ...] = ()
    agent: float = 0.0
    pod: float = 0.0
    rest: float = 0.0


class Place:
    """One node, with a pod `neighbour` that has an instance all the while."""

    def __init__(
        self, driver: OldInstallation, agent: KillableAgent, node: str, namespace: str
    ) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._agent = agent
        self._node = node
        self._namespace = namespace
        self._scope = f"--namespace={namespace}"
        self._serial = 0
        self._neighbour = f"neighbour-{node}"

    def settle_in(self) -> None:
        """Let the neighbour run."""
        selector = {"kubernetes.io/hostname": self._node}
        self._cluster.apply(
            asking(self._neighbour, self._namespace, {DRS: 1}, nodeSelector=selector)
        )
        self._cluster.wait("wait", self._scope, "--for=condition=Ready", f"pod/{self._neighbour}")
        self._await_records()

    def record(self, kind: Kind) -> list[Moment]:
        """The moments of an Allocate when nobody is killed."""
        before = len(self._agent.trace())
        name = self._ask(kind)
        self._judge(self._running(name))
        found = moments(self._settled()[before:])
        self._end(name)
        self._await_records()
        return found

    def kill(self, cell: Cell) -> Result:
        """Kill the agent there, and see what becomes of the pod and of all records. Raises
        AssertionError and WaitTimeout."""
        self._agent.order(cell.moment)
        name = self._ask(cell.kind)
        reached = self._comes()
        self._agent.revoke()
        begun = time.monotonic()
        if reached:
            self._agent.kill()
        agent = time.monotonic() - begun
        pod = self._running(name)
        ran = time.monotonic() - begun
        self._judge(pod)
        rest = time.monotonic() - begun
        refused = self._refused(name)
        self._end(name)
        self._renew()
        return Result(reached, refused, agent, ran, rest)

    def _ask(self, kind: Kind) -> str:
        self._serial += 1
        name = f"asks-{self._node}-{self._serial}"
        labels = {"app": name}
        spec = asking(
            name,
            self._namespace,
            LIMITS[kind],
            nodeSelector={"kubernetes.io/hostname": self._node},
        )["spec"]
        self._cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": self._namespace},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            }
        )
        return name

    def _comes(self) -> bool:
        """Whether the agent comes to the moment that it has an order for."""
        try:
            wait_until(self._agent.has_halted, _COMES, "the moment", interval=0.01)
        except WaitTimeout:
            return False
        return True

    def _pods(self, name: str) -> list[Object]:
        found: list[Object] = self._cluster.get("pods", self._scope, f"--selector=app={name}")[
            "items"
        ]
        return found

    def _running(self, name: str) -> Object:
        """The Deployment's pod, once one runs."""
        return wait_until(
            lambda: next((each for each in self._pods(name) if _is_ready(each)), None),
            PATIENCE,
            "a pod that runs",
            seen=lambda: self._cluster.kubectl("get", "pods", "--output=wide", self._scope),
        )

    def _refused(self, name: str) -> tuple[str, ...]:
        failed = [each["status"] for each in self._pods(name) if _phase(each) == "Failed"]
        assert all(each["reason"] == "UnexpectedAdmissionError" for each in failed), failed
        return tuple(each["message"] for each in failed)

    def _judge(self, pod: Object) -> None:
        """The pod sees what it asks for, and every record has that and the neighbour's."""
        self._driver.assert_has_what_it_asks(pod)
        self._await_records(pod["metadata"]["name"])

    def _await_records(self, *pods: str) -> None:
        """Return when the kubelet, the journal, the CDI directory and the machine have what these
        pods and the neighbour have, and nothing else."""
        wanted = {f"{self._namespace}/{name}" for name in (self._neighbour, *pods)}

        def agree() -> bool:
            told = recorded(self._driver, self._node)
            return told.keys() == wanted and Records.of(told.values()) == self._records()

        wait_until(
            agree,
            PATIENCE,
            f"records of {wanted} alone",
            seen=lambda: f"{recorded(self._driver, self._node)}\n{self._records()}",
        )

    def _records(self) -> Records:
        return Records.read(self._driver, self._node)

    def _end(self, name: str) -> None:
        self._cluster.kubectl("delete", "deployment", name, self._scope)

    def _renew(self) -> None:
        """Another agent, which finds that the pod has gone meanwhile."""
        before = len(self._agent.trace())
        self._agent.renew()
        wait_until(
            lambda: self._agent.trace()[before:].count(_REGISTER) >= len(Mode),
            PATIENCE,
            "an agent that is registered",
        )
        self._await_records()

    def _settled(self) -> list[str]:
        """The trace, once the threads beside have done their part, too."""
        trace = self._agent.trace()
        while True:
            time.sleep(_QUIET)
            before, trace = trace, self._agent.trace()
            if trace == before:
                return trace


def _phase(pod: Object) -> str:
    return str(pod["status"]["phase"])


def _is_ready(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in pod["status"].get("conditions", ())
    )


def table(results: Iterable[tuple[Cell, Result]]) -> list[str]:
    """The lines of a table: each kind and point, how many kills before and after it, whether the
    pod that asked ran or another in its place, and seconds."""
    columns = ("kills", "before", "after", "it runs", "replaced", "refusals", "missed")
    lines = [_line("kind", "point", *columns, "agent s", "pod s", "rest s")]
    found = list(results)
    for kind, point in dict.fromkeys((cell.kind, cell.moment.point) for cell, _ in found):
        here = [each for each in found if (each[0].kind, each[0].moment.point) == (kind, point)]
        lines.append(_line(kind, point, *_numbers(here)))
    return [*lines, _line("all", "", *_numbers(found))]


def _numbers(found: Iterable[tuple[Cell, Result]]) -> tuple[str, ...]:
    played = list(found)
    killed = [each for each in played if each[1].reached]
    counts = (
        len(killed),
        sum(cell.moment.side == "before" for cell, _ in killed),
        sum(cell.moment.side == "after" for cell, _ in killed),
        sum(not result.refused for _, result in killed),
        sum(bool(result.refused) for _, result in killed),
        sum(len(result.refused) for _, result in killed),
        len(played) - len(killed),
    )
    seconds = [
        [getattr(result, name) for _, result in killed] or [0.0]
        for name in ("agent", "pod", "rest")
    ]
    return (*map(str, counts), *(f"{median(each):.1f}/{max(each):.1f}" for each in seconds))


def _line(kind: str, point: str, *numbers: str) -> str:
    return f"{kind:<20} {point:<23}" + "".join(f"{number:>11}" for number in numbers)
