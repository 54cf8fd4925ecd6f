"""Detects another device plugin that gives this node's cards to pods."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from dra_driver.agent.lifecycle.serving_mode import ServingState
from dra_driver.kube.api import Api
from dra_driver.kube.resources import NODES
from dra_driver.model.card import Problem
from dra_driver.model.names import RESOURCE_DRS, RESOURCE_SHARED, RESOURCE_WHOLE, TAINT_FOREIGN
from dra_driver.util.hooks import Clock

_RESOURCES: Final = (RESOURCE_WHOLE, RESOURCE_SHARED, RESOURCE_DRS)
_EVERY: Final = 600.0  # seconds: plugins rarely change, and an idle agent makes few requests


class ForeignPluginDetector:
    """Reads from the Node whether a device plugin offers the resources of the vendor's plugin.
    `problem` then concerns all cards."""

    def __init__(
        self,
        api: Api,
        node_name: str,
        *,
        serving: ServingState,
        clock: Clock = time.monotonic,
    ) -> None:
        self._serving = serving
        self._api = api
        self._node_name = node_name
        self._clock = clock
        self._due = float("-inf")
        self.problem: Problem | None = None

    def detect(self) -> None:
        """Read the Node if it is time: at first, then every ten minutes, and at each call while
        there is a problem. Raises KubeError; then `problem` stays as it is."""
        now = self._clock()
        if self._serving.may_own_resources:
            # The kubelet accepts one plugin for each resource: the one that registered last.
            self.problem = None
            return
        if self.problem is None and now < self._due:
            return
        offered = offered_resources(self._api.get(NODES, self._node_name))
        self._due = now + _EVERY
        self.problem = _problem(offered) if offered else None


def offered_resources(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The extended resources of GCUs that are allocatable on the Node. The kubelet sets them to 0
    as soon as their plugin ends."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return tuple(name for name in _RESOURCES if allocatable.get(name, "0") != "0")


def _problem(offered: tuple[str, ...]) -> Problem:
    return Problem(
        TAINT_FOREIGN,
        "",
        f"a device plugin gives the cards of this node to pods as {', '.join(offered)}, and no "
        "claim gets these cards meanwhile; remove it, or keep this driver off the node",
    )
