"""What the DaemonSet's pods tell of their nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_driver.uninstall.holders import list_of

NOTHING_LEFT: Final = "nothing is left"
"""The last words of a node's container where that is so; all others say what is, and why."""


@dataclass(frozen=True, slots=True)
class Answers:
    """By node, what is left there (empty: nothing), and why there is no answer yet. From `down`
    ones none is to be expected. `missing` counts the nodes for which there is no pod yet."""

    left: Mapping[str, str]
    awaited: Mapping[str, str]
    missing: int = 0
    down: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pods: Iterable[Mapping[str, Any]], expected: int) -> Answers:
        """What pods (core/v1) of the DaemonSet tell, of which there should be so many."""
        left: dict[str, str] = {}
        awaited: dict[str, str] = {}
        for pod in pods:
            node, words = _node(pod), _last_words(pod)
            if words is None:
                awaited[node] = f"pod {pod['metadata']['name']} is {_state(pod)}"
            else:
                left[node] = "" if words == NOTHING_LEFT else words
        awaited = {node: why for node, why in awaited.items() if node not in left}
        return cls(left, awaited, max(0, expected - len(left) - len(awaited)))

    @property
    def are_all(self) -> bool:
        """Whether there is nobody left to wait for."""
        return not self.missing and self.awaited.keys() <= self.down

    def knowing(self, ready: Mapping[str, bool]) -> Answers:
        """With the nodes that there are, and whether each is ready; a deleted one has nothing."""
        awaited = {node: why for node, why in self.awaited.items() if node in ready}
        down = frozenset(node for node in awaited if not ready[node])
        return replace(self, awaited=awaited, down=down)

    def __str__(self) -> str:
        """For people."""
        clean = sum(not why for why in self.left.values())
        said = f"Nothing of the driver is left on {clean} node{'' if clean == 1 else 's'}."
        stays = [f"node {node}: {why}" for node, why in sorted(self.left.items()) if why]
        for node, why in sorted(self.awaited.items()):
            stays.append(f"node {node}: {'it is not ready' if node in self.down else why}")
        if self.missing:
            stays.append(f"{self.missing} more: no pod could be made there")
        if not stays:
            return said
        return f"{said} Elsewhere there may be (docs/user/install.md):\n{list_of(stays)}"


def _node(pod: Mapping[str, Any]) -> str:
    """The pod's node; before it is bound, the one for which its DaemonSet made it."""
    spec = pod["spec"]
    if "nodeName" in spec:
        return str(spec["nodeName"])
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _last_words(pod: Mapping[str, Any]) -> str | None:
    """What the container said that has done its work; None before that."""
    for status in pod.get("status", {}).get("initContainerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated")
        if ended and ended["exitCode"] == 0:
            return str(ended.get("message") or "it says nothing")
    return None


def _state(pod: Mapping[str, Any]) -> str:
    """How far it is, as far as it tells."""
    status = pod.get("status", {})
    for each in status.get("initContainerStatuses") or ():
        for state in (each.get("state") or {}).values():
            if state.get("reason"):
                return str(state["reason"])
    return str(status.get("phase", "Pending"))
