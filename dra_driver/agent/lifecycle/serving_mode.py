"""Whether a node serves its cards by DRA or by the device plugin, and notice of a change."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Literal

import msgspec

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.preflight import OLDEST, missing_dra
from dra_driver.kube.resources import NODES
from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

ModeSetting = Literal["auto", "dra", "device-plugin"]

# Seconds between two looks at the cluster, or up to twice as long: the agents of all nodes may have
# started together, and must not ask together.
_CHECK_EVERY = 300.0


class ServingMode(StrEnum):
    """How pods ask for GCUs: by ResourceClaims, or by extended resources."""

    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"


class ServingDecision(msgspec.Struct, frozen=True):
    """How new pods are served, and why. `has_dra` says whether the server has DRA at all: then the
    node can also have prepared claims."""

    mode: ServingMode
    reason: str
    has_dra: bool

    def __str__(self) -> str:
        name = "DRA" if self.mode is ServingMode.DRA else "the device plugin"
        return f"GCUs are served by {name}: {self.reason}"


class ServingState:
    """The mode in which this agent serves new pods, by the setting `mode` and by what API server
    and kubelet offer. The start chooses it once; no lock is needed."""

    def __init__(
        self,
        api: Api,
        node_name: str,
        mode: ModeSetting,
        *,
        clock: Clock = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`draw` gives numbers in [0, 1)."""
        self._api = api
        self._node_name = node_name
        self._mode = mode
        self._clock = clock
        self._draw = draw
        self._due = inf
        self.decision: ServingDecision | None = None
        """None until the API server and the kubelet are known, unless the setting is dra."""
        if mode == "dra":
            self.decision = ServingDecision(ServingMode.DRA, "mode is set to dra", has_dra=True)

    def is_mode(self, mode: ServingMode) -> bool:
        """Whether new pods are served in that mode."""
        return self.decision is not None and self.decision.mode is mode

    def choose(self) -> ServingDecision:
        """Decide for the present API server and kubelet. Raises KubeError, and InvalidValue if the
        Node does not say which kubelet it has."""
        if self._mode != "dra":
            self.decision = self._decide()
        assert self.decision is not None
        return self.decision

    def changed(self) -> ServingDecision | None:
        """The first decision for another mode, which an upgrade of the cluster has led to. The
        cluster is asked every five to ten minutes, however often this is called."""
        if self.decision is None or self._clock() < self._due:
            return None
        try:
            decision = self._decide()
        except GcuError as error:
            logger.info("whether the cluster serves DRA is not known now: %s", error)
            return None
        if self.is_mode(decision.mode):
            return None
        self._due = inf
        return decision

    def _decide(self) -> ServingDecision:
        if self._mode == "auto":  # only then can the decision change
            self._due = self._clock() + _CHECK_EVERY * (1.0 + self._draw())
        server = self._api.server_version()
        missing = missing_dra(self._api, server)
        if self._mode == "device-plugin":
            return ServingDecision(
                ServingMode.DEVICE_PLUGIN, "mode is set to device-plugin", has_dra=not missing
            )
        if missing:
            return ServingDecision(ServingMode.DEVICE_PLUGIN, missing, has_dra=False)
        kubelet = kubelet_version(self._api, self._node_name)
        if (kubelet.major, kubelet.minor) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            reason = f"the kubelet is {kubelet}, and DRA is used from {oldest} on"
            return ServingDecision(ServingMode.DEVICE_PLUGIN, reason, has_dra=True)
        return ServingDecision(
            ServingMode.DRA, f"the server is {server}, the kubelet {kubelet}", has_dra=True
        )


def kubelet_version(api: Api, node_name: str) -> ServerVersion:
    """The version of the kubelet in the Node's status; raises KubeError, InvalidValue."""
    node = api.get(NODES, node_name)
    text = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))
    try:
        return ServerVersion.of_git(text)
    except InvalidValue as error:
        raise InvalidValue(
            f"Node {node_name} does not say which kubelet it has: {text!r}",
            remedy="wait until the kubelet has registered the node, or set the chart's mode",
        ) from error
