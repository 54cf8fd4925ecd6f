"""Keeps the annotations and the vendor's label of the Node up to date."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from dra_driver.device_plugin.inventory import NodeViewSource
from dra_driver.device_plugin.node_annotations import node_annotations, node_cards, node_labels
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.resources import NODES
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.model.errors import GcuError
from dra_driver.model.names import FIELD_MANAGER
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_COMPARE_EVERY: Final = 1.0  # seconds; the kubelet records the pod after the answer to Allocate
_WRITE_EVERY: Final = 300.0  # seconds; the annotations may have been removed


ReadCheckpoint = Callable[[], Collection[Recorded]]
"""The devices of each container by the kubelet's checkpoint; raises KubeletError."""


KubeletIdentity = Callable[[], object]
"""Another value after each restart of the kubelet, which recreates a deleted Node."""


class NodeAnnotator(Background):
    """Writes whenever the annotations or the label must change, in its own thread; `wake` makes it
    compare at once. If `recorded` fails, the annotations name no pods. `wait(seconds)` sleeps, and
    returns True when the annotator was stopped."""

    def __init__(
        self,
        api: Api,
        node_name: str,
        *,
        view: NodeViewSource,
        recorded: ReadCheckpoint,
        clock: Clock,
        kubelet: KubeletIdentity = lambda: None,
        wait: Wait | None = None,
    ) -> None:
        super().__init__("node-annotator", wait=wait, interrupt=self.wake)
        self._api = api
        self._node_name = node_name
        self._view = view
        self._recorded = recorded
        self._kubelet = kubelet
        self._clock = clock
        self._backoff = Backoff(first=1.0, longest=60.0)
        self._woken = threading.Event()
        self._written: Mapping[str, Mapping[str, str]] | None = None
        self._written_at = 0.0
        self._written_for: object = None
        self.problem: str | None = "the Node has not been annotated yet"

    def wake(self) -> None:
        """Compare at once: a card or its use has changed."""
        self._woken.set()

    def run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                self.run_once()
                self._backoff.reset()
            except GcuError as error:
                if self.problem != str(error):
                    logger.warning("the Node cannot be annotated: %s", error)
                self.problem = str(error)
                self._wait(self._backoff.next())
            self._woken.wait(_COMPARE_EVERY)

    def run_once(self) -> None:
        """Compare once, and write the difference. Raises KubeError, and JournalError."""
        view = self._view()
        if view.cards is None:
            return  # the cards have not been read
        cards = node_cards(view, self._owners())
        wanted = {"annotations": node_annotations(view, cards), "labels": node_labels(cards)}
        now, kubelet = self._clock(), self._kubelet()
        known = wanted == self._written and kubelet == self._written_for
        if known and now - self._written_at < _WRITE_EVERY:
            self.problem = None
            return
        self._written = None  # unknown until the server has answered
        # Only the status, because the right to patch it does not allow to change the node's
        # taints. By apply, which removes former annotations unless another client wrote them.
        self._api.patch(
            NODES,
            self._node_name,
            {
                "apiVersion": NODES.api_version,
                "kind": NODES.kind,
                "metadata": {"name": self._node_name, **wanted},
            },
            patch_type=PatchType.APPLY,
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )
        self._written, self._written_at, self._written_for = wanted, now, kubelet
        self.problem = None

    def _owners(self) -> Collection[Recorded]:
        try:
            return self._recorded()
        except KubeletError as error:
            logger.debug("which pods have devices is unknown: %s", error)
            return ()
