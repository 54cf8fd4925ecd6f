"""Annotations and labels of the agent's own Node, by server-side apply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Final

from dra_driver.kube.api import Api, apply_status
from dra_driver.kube.resources import NODES
from dra_driver.model.errors import GcuError
from dra_driver.util.background import Wait, Woken
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_COMPARE_EVERY: Final = 1.0  # seconds; the kubelet records the pod after the answer to Allocate
_WRITE_EVERY: Final = 300.0  # seconds; what was written may have been removed


NodeMetadata = Mapping[str, Mapping[str, str]]
"""``annotations`` and ``labels``; what the field manager wrote before and is not in it goes."""


KubeletIdentity = Callable[[], object]
"""Another value after each restart of the kubelet, which recreates a deleted Node."""


@dataclass(eq=False)
class NodeMetadataWriter(Woken):
    """Writes whenever what is `wanted` has changed, in its own thread; `wake` makes it compare at
    once. `wanted` gives None while that is not known, and raises GcuError. `problem` says why the
    Node may differ."""

    thread: InitVar[str]
    api: Api
    node_name: str
    _: KW_ONLY
    wanted: Callable[[], NodeMetadata | None]
    field_manager: str
    kubelet: KubeletIdentity = lambda: None
    clock: Clock = time.monotonic
    wait: InitVar[Wait | None] = None

    def __post_init__(self, thread: str, wait: Wait | None) -> None:
        super().__init__(thread, wait=wait)
        self._backoff = Backoff(first=1.0, longest=60.0)
        self._written: tuple[NodeMetadata, object] | None = None  # and for which kubelet
        self._written_at = 0.0
        self.problem: str | None = "nothing has been written on the Node yet"

    def run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                self.run_once()
                self._backoff.reset()
            except GcuError as error:
                if self.problem != str(error):
                    logger.warning("labels or annotations of the Node cannot be written: %s", error)
                self.problem = str(error)
                self._wait(self._backoff.next())
            self._woken.wait(_COMPARE_EVERY)

    def run_once(self) -> None:
        """Compare once, and write the difference. Raises GcuError."""
        wanted = self.wanted()
        if wanted is None:
            return
        now, found = self.clock(), (wanted, self.kubelet())
        if found != self._written or now - self._written_at >= _WRITE_EVERY:
            self._written = None  # unknown until the server has answered
            apply_metadata(self.api, self.node_name, wanted, self.field_manager)
            self._written, self._written_at = found, now
        self.problem = None


def apply_metadata(api: Api, node_name: str, wanted: NodeMetadata, field_manager: str) -> None:
    """Let the field manager own these annotations and labels, and no others: what it wrote before
    is removed unless another client had written it before. Raises KubeError."""
    # Only the status, because the right to patch it does not allow to change the node's taints.
    apply_status(api, NODES, {"metadata": {"name": node_name, **wanted}}, field_manager)
