"""Views on what ``status`` of a pod says about its start. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.model.claims.claim import Object

# Kubelet 1.36.3, reasons that are no error.
_STARTS: Final = frozenset({"ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True)
class WaitingContainer:
    """A container that does not run, with the kubelet's reason and message."""

    name: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}{': ' if self.message else ''}{self.message}"

    @property
    def is_error(self) -> bool:
        return self.reason not in _STARTS

    @property
    def lacks_cdi_device(self) -> bool:
        """containerd 2.4.2: ``CDI device injection failed: unresolvable CDI devices …``."""
        return "CDI device" in self.message


def waiting_containers(pod: Object) -> Iterator[WaitingContainer]:
    """Each container of the pod that waits."""
    status = pod.get("status") or {}
    for container in (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting is not None:
            reason, message = waiting.get("reason", ""), waiting.get("message", "")
            yield WaitingContainer(container["name"], str(reason), str(message).rstrip("."))


def ended_containers(pod: Object) -> Iterator[str]:
    """The containers that have ended and do not start again, by the restartPolicy of the container
    or the pod; init containers start again after a failure."""
    spec, status = pod["spec"], pod.get("status") or {}
    for kind, policy in (
        ("initContainer", "OnFailure"),
        ("container", spec.get("restartPolicy") or "Always"),
    ):
        own = {each["name"]: each.get("restartPolicy") for each in spec.get(f"{kind}s") or ()}
        for container in status.get(f"{kind}Statuses") or ():
            terminated = (container.get("state") or {}).get("terminated")
            restarts = own.get(container["name"]) or policy
            if terminated is not None and (
                restarts == "Never" or (restarts == "OnFailure" and not terminated.get("exitCode"))
            ):
                yield str(container["name"])


def scheduled_condition(pod: Object) -> Mapping[str, Any]:
    """The condition PodScheduled; empty where kube-scheduler has not tried the pod."""
    found = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in found if each["type"] == "PodScheduled"), {})


def is_untried(pod: Object) -> bool:
    """Whether no scheduler has tried the pod. The condition of a gate stays after the gate, until
    the first try (kube-scheduler 1.37.1)."""
    condition = scheduled_condition(pod)
    return not condition.get("message") or condition.get("reason") == "SchedulingGated"
