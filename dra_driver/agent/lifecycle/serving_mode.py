"""Whether a node serves its cards by DRA or by the device plugin, and notice of a change."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from enum import StrEnum
from typing import Final, Literal

import msgspec

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.preflight import OLDEST, missing_dra
from dra_driver.kube.resources import NODES
from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.util.background import Background, Wait

logger = logging.getLogger(__name__)

ModeSetting = Literal["auto", "dra", "device-plugin"]


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
        return f"GCUs are served by {_NAMES[self.mode]}: {self.reason}"


_NAMES: Final = {ServingMode.DRA: "DRA", ServingMode.DEVICE_PLUGIN: "the device plugin"}


class ServingState:
    """The mode in which this agent serves new pods. The start sets it once; no lock is needed."""

    def __init__(self, decision: ServingDecision | None) -> None:
        """`decision` is None until the API server and the kubelet are known."""
        self.decision = decision

    def is_mode(self, mode: ServingMode) -> bool:
        """Whether new pods are served in that mode."""
        return self.decision is not None and self.decision.mode is mode


class ServingModeSelector:
    """Chooses the mode by the setting `mode`, and by what API server and kubelet offer."""

    def __init__(self, api: Api, node_name: str, mode: ModeSetting) -> None:
        self._api = api
        self._node_name = node_name
        self._mode = mode

    @property
    def can_change(self) -> bool:
        """Whether an upgrade of the cluster can change the decision."""
        return self._mode == "auto"

    @property
    def fixed(self) -> ServingDecision | None:
        """The decision, if it depends on the setting alone; otherwise None."""
        if self._mode == "dra":
            return ServingDecision(ServingMode.DRA, "mode is set to dra", has_dra=True)
        return None

    def choose(self) -> ServingDecision:
        """Decide for the present API server and kubelet. Raises KubeError, and InvalidValue if the
        Node does not say which kubelet it has."""
        if self.fixed is not None:
            return self.fixed
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
            reason = f"the kubelet is {kubelet}, and DRA is used from {_text(OLDEST)} on"
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


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


# Seconds between two checks, or up to twice as long: the agents of all nodes may have started
# together, and must not ask together.
_CHECK_EVERY = 300.0


Choose = Callable[[], ServingDecision]
"""`ServingModeSelector.choose`."""


OnDecision = Callable[[ServingDecision], None]
"""Called once, with the first decision for another mode."""


class ServingModeWatcher(Background):
    """Calls `choose` every five minutes in its own thread, until it decides for another mode."""

    def __init__(
        self,
        choose: Choose,
        on_decision: OnDecision,
        *,
        wait: Wait | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`draw` gives numbers in [0, 1)."""
        super().__init__("serving-mode", wait=wait)
        self._choose = choose
        self._on_decision = on_decision
        self._draw = draw
        self._present: ServingDecision | None = None

    def follow(self, present: ServingDecision) -> None:
        """Start, with the decision that holds now."""
        self._present = present
        self.start()

    def is_alive(self) -> bool:
        """Whether the thread runs, or has ended because it found another mode."""
        return super().is_alive() or self._present is None

    def run(self) -> None:
        while not self._wait(_CHECK_EVERY * (1.0 + self._draw())):
            try:
                decision = self._choose()
            except GcuError as error:
                logger.info("whether the cluster serves DRA is not known now: %s", error)
                continue
            if self._present is not None and decision.mode is not self._present.mode:
                self._present = None
                self._on_decision(decision)
                return
