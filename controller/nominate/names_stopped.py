"""The event that nodes are not named any more, because kube-scheduler does not follow names."""

from __future__ import annotations

from typing import Final

from controller.own_pod import OwnPod
from dra_driver.kube.events import EventType, Recorder

REASON: Final = "GcuNodeNamesStopped"
NOTE: Final = (
    "kube-scheduler followed fewer than half of the last 200 names of nodes. From now on this "
    "controller proposes nodes by preferred node affinity, which packs worse, until it restarts. "
    "See which plugins of kube-scheduler filter those nodes: docs/user/which-allocator.md"
)


def report_names_stopped(recorder: Recorder, own_pod: OwnPod) -> None:
    """Calls the API server for the controller's own pod, which the event is about."""
    recorder.record(
        own_pod.reference(),
        kind=EventType.WARNING,
        reason=REASON,
        note=NOTE,
        action="NameNode",
    )
