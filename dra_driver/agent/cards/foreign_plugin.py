"""Whether another program gives this node's cards to pods: a device plugin beside this driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_driver.kube.api import Api
from dra_driver.kube.resources import NODES
from dra_driver.model.card import Problem
from dra_driver.model.names import RESOURCE_DRS, RESOURCE_SHARED, RESOURCE_WHOLE, TAINT_FOREIGN

_RESOURCES: Final = (RESOURCE_WHOLE, RESOURCE_SHARED, RESOURCE_DRS)
_EVERY: Final = 600.0  # seconds; plugins do not come and go, and an idle agent asks for little


class ForeignPluginDetector:
    """What the Node says of device plugins that offer what a vendor's plugin offers. `problem` is
    all cards' while there is one."""

    def __init__(
        self,
        api: Api,
        node_name: str,
        *,
        ours: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ours` says whether the resources are this agent's own, or may be, as it is not known yet
        how it serves: the Node still tells of the agent before it. `clock` is monotonic seconds."""
        self._ours = ours
        self._api = api
        self._node_name = node_name
        self._clock = clock
        self._due = float("-inf")
        self.problem: Problem | None = None

    def detect(self) -> None:
        """Read the Node when it is time: at first, then every ten minutes, and at each look while
        there is a problem. Raises KubeError; then what was found before holds."""
        now = self._clock()
        if self._ours():
            # The kubelet lets one plugin alone serve a resource: the one that came last.
            self.problem = None
            return
        if self.problem is None and now < self._due:
            return
        offered = offered_resources(self._api.get(NODES, self._node_name))
        self._due = now + _EVERY
        self.problem = _problem(offered) if offered else None


def offered_resources(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The extended resources of GCUs of which the Node has some to give. When a plugin ends the
    kubelet sets what is allocatable to 0 at once."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return tuple(name for name in _RESOURCES if allocatable.get(name, "0") != "0")


def _problem(offered: tuple[str, ...]) -> Problem:
    return Problem(
        TAINT_FOREIGN,
        "",
        f"a device plugin gives the cards of this node to pods as {', '.join(offered)}; remove it, "
        "or keep this driver off the node",
    )
