"""Looks at the whole cluster from outside: the API server, containerd, processes, machines."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dra_driver.model.errors import JournalError
from dra_driver.model.names import (
    DRIVER,
    ENV_TOPS_VISIBLE_DEVICES,
    ENV_VISIBLE_DEVICES,
    pool_name,
)
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size
from dra_driver.node.checkpoint.ledger import Ledger
from tests.chaos.look import Card, Container, Look, Place
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.node import Node
from tests.cluster.workloads import why_unscheduled
from tests.e2e.installation import Installation
from tests.unit.node.ledger_file import read_ledger

Object = dict[str, Any]

STATE: Final = f"/var/lib/kubelet/plugins/{DRIVER}"
_CARD_NODE: Final = re.compile(r"gcu(\d+)")
_SAYS_NOTHING: Final = frozenset({"ContainerCreating", "PodInitializing"})
_ASKED_FOR: Final = frozenset({0, 128 + signal.SIGKILL, 128 + signal.SIGTERM})
"""Exit codes of a program that was ended from outside."""
_RECENT: Final = 150.0
"""Seconds: the kubelet tries a pod again after at most 90."""


class Observer:
    """Looks at one namespace's pods and claims, and at all nodes."""

    def __init__(self, driver: Installation, namespace: str) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._scope = f"--namespace={namespace}"
        self._labels: dict[str, dict[str, str]] = {}

    def look(self) -> Look:
        """Raises CommandError while the API server does not answer."""
        pods = self._cluster.get("pods", self._scope)["items"]
        claims = self._cluster.get("resourceclaims", self._scope)["items"]
        nodes = self._cluster.nodes
        return Look(
            at=time.monotonic(),
            pods={each["metadata"]["uid"]: each for each in pods},
            claims={each["metadata"]["uid"]: each for each in claims},
            containers={one.id: one for node in nodes for one in self.containers(node)},
            cards={place: card for node in nodes for place, card in self._cards(node)},
            owned={pool_name(node.name): _instances(self.ledger(node)) for node in nodes},
        )

    def reason(self, pod: Object) -> str:
        """Why the pod is not ready, as users are told: by its conditions, its containers, or a
        warning of the last minutes. "" where nobody says."""
        said = [why_unscheduled(pod)]
        for status in pod["status"].get("containerStatuses", ()):
            state = status["state"].get("waiting", {})
            if state.get("reason") not in _SAYS_NOTHING:
                said.append(str(state.get("message") or state.get("reason") or ""))
        selector = f"type=Warning,involvedObject.uid={pod['metadata']['uid']}"
        events = self._cluster.get("events", self._scope, f"--field-selector={selector}")["items"]
        said += [f"{each['reason']}: {each['message']}" for each in events if _is_recent(each)]
        return next((words for words in reversed(said) if words), "")

    def ended(self) -> Iterator[tuple[str, str]]:
        """The ends of the driver's programs that nobody asked for: the container's ID, and what
        its kubelet tells."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        for pod in self._cluster.get("pods", scope)["items"]:
            for status in pod["status"].get("containerStatuses", ()):
                end = (status.get("lastState") or {}).get("terminated")
                if end and _ended_by_itself(end):
                    name = pod["metadata"]["name"]
                    said = self._cluster.kubectl("logs", scope, name, "--previous", "--tail=3")
                    text = f"{name}: {end['reason']}, code {end['exitCode']}: {said.strip()}"
                    yield str(end["containerID"]), text

    def left(self) -> Iterator[str]:
        """What there is of workloads. Raises CommandError."""
        for kind in ("pods", "resourceclaims"):
            for each in self._cluster.get(kind, self._scope)["items"]:
                yield f"{kind} {each['metadata']['name']}"
        for node in self._cluster.nodes:
            for file in sorted(self._driver.cdi_files(node)):
                yield f"CDI file {file} of {node.name}"
            ledger = self.ledger(node)
            for uid in ledger.claims if ledger else ["(being written)"]:
                yield f"holding {uid} in the journal of {node.name}"
            for (_, address), card in self._cards(node):
                if card.divided or card.instances:
                    yield f"card {address} of {node.name} in DRS mode, with {list(card.instances)}"

    def containers(self, node: Node) -> Iterator[Container]:
        """The running containers of pods, as their processes see the node."""
        for line in node.ctr("tasks", "list").splitlines()[1:]:
            task, pid, status = line.split()
            labels = self._labels_of(node, task)
            name = labels.get("io.kubernetes.container.name")
            if status != "RUNNING" or name is None:
                continue
            # It may end at any time.
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                found = _container(task, labels["io.kubernetes.pod.uid"], name, Path("/proc", pid))
                if found is not None:
                    yield found

    def ledger(self, node: Node) -> Ledger | None:
        """The holdings of the node's journal; None while the agent writes to it."""
        try:
            return read_ledger(node.host_path(STATE))
        except JournalError:
            return None

    def _labels_of(self, node: Node, container: str) -> dict[str, str]:
        if container not in self._labels:
            told = json.loads(node.ctr("containers", "info", container))
            self._labels[container] = told.get("Labels") or {}
        return self._labels[container]

    def _cards(self, node: Node) -> Iterator[tuple[Place, Card]]:
        pool = pool_name(node.name)
        for card in self._driver.machine(node.name).state().cards:
            sizes = {one.uuid: profile_size(one.profile) for one in card.instances}
            divided = card.virtualization != "Disable"
            yield (pool, PciAddress.parse(card.bdf)), Card(card.minor, divided, sizes)


def _container(task: str, pod: str, name: str, process: Path) -> Container | None:
    """None while the process is still runc, which has the variables of no container, in a root that
    has its device nodes already. containerd gives each container its HOSTNAME."""
    words = (process / "environ").read_bytes().decode(errors="replace").split("\0")
    variables = dict(word.partition("=")[::2] for word in words)
    if "HOSTNAME" not in variables:
        return None
    visible = variables.get(ENV_VISIBLE_DEVICES, "")
    names = (path.name for path in (process / "root/dev").iterdir())
    matches = map(_CARD_NODE.fullmatch, names)
    return Container(
        id=task,
        pod=pod,
        name=name,
        minors=frozenset(int(match[1]) for match in matches if match),
        visible=frozenset(int(minor) for minor in visible.split(",") if minor),
        instance=variables.get(ENV_TOPS_VISIBLE_DEVICES, "").removeprefix("DRS-"),
    )


def _instances(ledger: Ledger | None) -> frozenset[str] | None:
    if ledger is None:
        return None
    return frozenset(
        device.instance.uuid
        for held in ledger.claims.values()
        for device in held.devices
        if device.instance and device.instance.uuid
    )


def _ended_by_itself(end: Object) -> bool:
    """Not one that has not begun: the runtime gives up where the kubelet is killed meanwhile."""
    was_killed = end["exitCode"] in _ASKED_FOR and end["reason"] != "OOMKilled"
    return not was_killed and end["reason"] != "StartError"


def _is_recent(event: Object) -> bool:
    series = event.get("series") or {}
    at = series.get("lastObservedTime") or event.get("lastTimestamp") or event["eventTime"]
    age = datetime.now(UTC) - datetime.fromisoformat(at)
    return age.total_seconds() < _RECENT
