"""Reports that no node runs an agent: then no node offers a GCU, and every claim waits."""

from __future__ import annotations

import logging
from typing import Final

from controller.agents import RunningAgents
from controller.leaderelection.fence import Fence
from controller.own_pod import OwnPod
from dra_driver.util.background import Background
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

REASON: Final = "GcuNoAgents"

_EVERY: Final = 5.0
_PATIENCE: Final = 60.0  # seconds: agents are started, or replaced
_AGAIN: Final = 3600.0  # an API server deletes events after an hour


class MissingAgentsReporter(Background):
    """While this replica leads, sends an event about its pod when no agent has run for a minute,
    and every hour as long as none runs. `labels` is what a node needs for an agent, such as
    ``key=value``; empty where an affinity of the chart's values decides. Constructing it has no
    effect."""

    def __init__(
        self,
        agents: RunningAgents,
        fence: Fence,
        own_pod: OwnPod,
        *,
        labels: str,
        clock: Clock,
    ) -> None:
        super().__init__("missing-agents")
        self._agents = agents
        self._fence = fence
        self._own_pod = own_pod
        self._labels = labels
        self._clock = clock
        self._due: float | None = None

    def run(self) -> None:
        while not self._wait(_EVERY):
            self.run_once()

    def run_once(self) -> None:
        """Send the event if it is due."""
        if not self._fence.is_open() or not self._agents.is_synced or self._agents.nodes():
            self._due = None
            return
        now = self._clock()
        if self._due is None:
            self._due = now + _PATIENCE
        elif now >= self._due:
            self._due = now + _AGAIN
            note = missing_note(self._labels)
            logger.warning("%s", note)
            self._own_pod.report(REASON, note, "WatchAgents")


def missing_note(labels: str) -> str:
    """What is wrong, and what to do."""
    remedy = (
        f"`kubectl label nodes NODE {labels}`, or select nodes by the chart's agent.nodeSelector"
        if labels
        else "see which nodes the chart's agent.nodeSelector and agent.affinity select"
    )
    return (
        "no node runs an agent, so no GCU is offered, and pods that request one wait. Give each "
        f"node with GCUs an agent: {remedy}. If there are such nodes, `kubectl describe daemonset` "
        "says why no agent runs"
    )
