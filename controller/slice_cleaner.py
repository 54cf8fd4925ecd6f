"""Deletes the hidden ResourceSlices of nodes whose agent has ended: docs/adr/0026.

The kubelet deletes the slices that name its node when the driver's plugin has been away for 30 s
(1.36.3, ``pkg/kubelet/cm/dra/manager.go``, ``defaultWipingDelay``). Hidden slices name no node.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, Final

from controller.agents import RunningAgents
from controller.leaderelection.fence import Fence
from dra_driver.kube.api import Api
from dra_driver.kube.decode import Typed
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.names import DRIVER
from dra_driver.util.background import Background
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_EVERY: Final = 5.0
_DELAY: Final = 30.0
"""Seconds without an agent's container after which a node's slices are deleted, as a kubelet
waits."""

_SLICE: Final = {"metadata": dict[str, Any], "spec": {"nodeName": str, "pool": {"name": str}}}


class SliceCleaner(Background):
    """While this replica leads, deletes a node's hidden slices 30 s after the last container of an
    agent there has ended. Constructing it has no effect.

    `agents` is fed by a watch.
    """

    def __init__(self, api: Api, fence: Fence, agents: RunningAgents, *, clock: Clock) -> None:
        super().__init__("slice-cleaner")
        self._api = api
        self._fence = fence
        self._clock = clock
        self._agents = agents
        self._nodes: set[str] | None = None  # with hidden slices; None until they were listed
        self._absent_since: dict[str, float] = {}

    def run(self) -> None:
        while not self._wait(_EVERY):
            if not self._agents.is_synced:
                continue
            try:
                self.clean()
            except KubeError as error:
                logger.warning("hidden slices are not cleaned up now: %s", error)

    def clean(self) -> None:
        """Delete what is due now. Raises KubeError."""
        if not self._fence.is_open():
            self._nodes = None
            self._absent_since.clear()
            return
        running, now = self._agents.nodes(), self._clock()
        if self._nodes is None:
            self._nodes = self._listed()
        self._nodes |= running
        for node in running:
            self._absent_since.pop(node, None)
        for node in sorted(self._nodes - running):
            if now - self._absent_since.setdefault(node, now) >= _DELAY:
                self._delete(node)
                self._nodes.discard(node)
                self._absent_since.pop(node, None)

    def _listed(self) -> set[str]:
        slices = self._api.list(
            RESOURCE_SLICES, field_selector=f"spec.driver={DRIVER}", decoder=Typed(_SLICE)
        ).items
        hidden = (each["spec"] for each in slices if not each["spec"].get("nodeName"))
        return {spec["pool"]["name"].removeprefix(f"{DRIVER}/") for spec in hidden}

    def _delete(self, node: str) -> None:
        name = hidden_name(node)
        slices = self._api.list(RESOURCE_SLICES, field_selector=f"metadata.name={name}").items
        if slices and self._fence.is_open():
            logger.info("deleting ResourceSlice %s: no agent runs on its node", name)
            with suppress(NotFound):
                self._api.delete(RESOURCE_SLICES, name, uid=slices[0]["metadata"]["uid"])
