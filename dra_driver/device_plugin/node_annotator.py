"""Keeps the annotations of the Node, and the vendor's label, as the cards are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from dra_driver.device_plugin.inventory import NodeView
from dra_driver.device_plugin.node_annotations import node_annotations, node_cards, node_labels
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.resources import NODES
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.model.errors import GcuError
from dra_driver.model.names import FIELD_MANAGER
from dra_driver.model.owner import ContainerAllocation
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)

_COMPARE_EVERY: Final = 1.0  # seconds; the kubelet records whose a grant is after our answer
_ASSERT_EVERY: Final = 300.0  # seconds; somebody may have removed what was written


class NodeAnnotator(Background):
    """Writes whenever what is to be told has changed, in a thread of its own; `wake` makes it look
    at once.

    `recorded` is what the kubelet's checkpoint says as it stands, and raises KubeletError where it
    cannot be read: then nobody is named. `kubelet` gives something else when the kubelet was
    started anew: a Node that was deleted is made anew by that. `clock` is monotonic seconds;
    `wait(seconds)` sleeps, and returns True when the reporter was stopped.
    """

    def __init__(
        self,
        api: Api,
        node_name: str,
        *,
        view: Callable[[], NodeView],
        recorded: Callable[[], Collection[Recorded]],
        clock: Callable[[], float],
        kubelet: Callable[[], object] = lambda: None,
        wait: Wait | None = None,
    ) -> None:
        super().__init__("node-report", wait=wait, interrupt=self.wake)
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
        self.problem: str | None = "the Node has not been told of the cards yet"

    def wake(self) -> None:
        """Look at once: something was given out, or released, or the cards changed."""
        self._woken.set()

    def run(self) -> None:
        """The thread's work; returns after `stop`."""
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                self.run_once()
                self._backoff.reset()
            except GcuError as error:
                if self.problem != str(error):
                    logger.warning("the Node is not told of the cards: %s", error)
                self.problem = str(error)
                self._wait(self._backoff.next())
            self._woken.wait(_COMPARE_EVERY)

    def run_once(self) -> None:
        """One comparison, and the write that it takes. Raises KubeError, and JournalError where it
        is not known what is held."""
        view = self._view()
        if view.cards is None:
            return  # nothing has been read: that says nothing of the cards
        cards = node_cards(view, self._owners(view))
        wanted = {"annotations": node_annotations(view, cards), "labels": node_labels(cards)}
        now, kubelet = self._clock(), self._kubelet()
        known = wanted == self._written and kubelet == self._written_for
        if known and now - self._written_at < _ASSERT_EVERY:
            self.problem = None
            return
        self._written = None  # what is there is not known until the server has answered
        # The status alone: who may patch it cannot change the node's taints. Applied: what is
        # not wanted any more goes, unless somebody else wrote it, too.
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

    def _owners(self, view: NodeView) -> Collection[Recorded]:
        if not any(
            isinstance(each.owner, ContainerAllocation) for each in view.ledger.claims.values()
        ):
            return ()
        try:
            return self._recorded()
        except KubeletError as error:
            logger.debug("whose the grants are: %s", error)
            return ()
