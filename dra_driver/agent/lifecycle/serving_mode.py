"""In which of two ways a node's cards are served: by DRA, or as a device plugin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.errors import NotFound
from dra_driver.kube.preflight import OLDEST
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.model.errors import InvalidValue

WayMode = Literal["auto", "dra", "device-plugin"]

_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:[.+-].*)?")


class ServingMode(StrEnum):
    """How pods ask for GCUs: by ResourceClaims, or by extended resources."""

    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"


@dataclass(frozen=True, slots=True)
class ServingDecision:
    """The way, why, and whether the server has DRA at all: then claims can be held here, whichever
    way new pods are served in."""

    mode: ServingMode
    reason: str
    has_dra: bool

    def __str__(self) -> str:
        return f"GCUs are served by {_NAMES[self.mode]}: {self.reason}"


_NAMES: Final = {ServingMode.DRA: "DRA", ServingMode.DEVICE_PLUGIN: "the device plugin"}


class ServingModeSelector:
    """Chooses by `mode` and by what server and kubelet offer."""

    def __init__(self, api: Api, node_name: str, mode: WayMode) -> None:
        self._api = api
        self._node_name = node_name
        self._mode = mode

    @property
    def can_change(self) -> bool:
        """Whether another choice can be right later on."""
        return self._mode == "auto"

    @property
    def fixed(self) -> ServingDecision | None:
        """The choice that needs no look at the server, or None."""
        if self._mode == "dra":
            return ServingDecision(ServingMode.DRA, "mode is set to dra", has_dra=True)
        return None

    def choose(self) -> ServingDecision:
        """The choice for server and kubelet of now; raises KubeError, and InvalidValue for a
        version that is none."""
        if self.fixed is not None:
            return self.fixed
        lack = self._lack_of_server()
        if self._mode == "device-plugin":
            return ServingDecision(
                ServingMode.DEVICE_PLUGIN, "mode is set to device-plugin", has_dra=not lack
            )
        if lack:
            return ServingDecision(ServingMode.DEVICE_PLUGIN, lack, has_dra=False)
        kubelet = kubelet_version(self._api, self._node_name)
        if (kubelet.major, kubelet.minor) < OLDEST:
            reason = f"the kubelet is {kubelet}, and DRA is used from {_text(OLDEST)} on"
            return ServingDecision(ServingMode.DEVICE_PLUGIN, reason, has_dra=True)
        server = self._api.server_version()
        return ServingDecision(
            ServingMode.DRA, f"the server is {server}, the kubelet {kubelet}", has_dra=True
        )

    def _lack_of_server(self) -> str:
        """What the API server has not got of what DRA takes; empty where it has all."""
        version = self._api.server_version()
        if (version.major, version.minor) < OLDEST:
            return f"the server is {version}, and DRA is used from {_text(OLDEST)} on"
        try:
            # Of one node's slices the agent may always ask, and there are few.
            self._api.list(RESOURCE_SLICES, field_selector=f"spec.nodeName={self._node_name}")
        except NotFound:
            return f"the server {version} does not serve {RESOURCE_SLICES.api_version}"
        return ""


def kubelet_version(api: Api, node_name: str) -> ServerVersion:
    """The version of the node's kubelet, as its Node says; raises KubeError, InvalidValue."""
    node = api.get(NODES, node_name)
    text = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))
    match = _VERSION.fullmatch(text)
    if match is None:
        raise InvalidValue(
            f"Node {node_name} does not say which kubelet it has: {text!r}",
            remedy="wait until the kubelet has registered the node, or set the chart's mode",
        )
    return ServerVersion(int(match[1]), int(match[2]), text)


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
