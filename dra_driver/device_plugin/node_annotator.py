"""Keeps the annotations and the vendor's label of the Node up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from dra_driver.device_plugin.inventory import NodeViewSource
from dra_driver.device_plugin.node_annotations import node_annotations, node_cards, node_labels
from dra_driver.kube.api import Api
from dra_driver.kube.node_metadata import KubeletIdentity, NodeMetadata, NodeMetadataWriter
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.kubelet_api.errors import KubeletError
from dra_driver.model.names import FIELD_MANAGER
from dra_driver.util.background import Wait
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)


ReadCheckpoint = Callable[[], Collection[Recorded]]
"""The devices of each container by the kubelet's checkpoint; raises KubeletError."""


class NodeAnnotator(NodeMetadataWriter):
    """If `recorded` fails, the annotations name no pods."""

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
        super().__init__(
            "node-annotator",
            api,
            node_name,
            field_manager=FIELD_MANAGER,
            clock=clock,
            kubelet=kubelet,
            wait=wait,
        )
        self._view = view
        self._recorded = recorded

    def wanted(self) -> NodeMetadata | None:
        """None until the cards have been read. Raises JournalError."""
        view = self._view()
        if view.cards is None:
            return None
        cards = node_cards(view, self._owners())
        return {"annotations": node_annotations(view, cards), "labels": node_labels(cards)}

    def _owners(self) -> Collection[Recorded]:
        try:
            return self._recorded()
        except KubeletError as error:
            logger.debug("which pods have devices is unknown: %s", error)
            return ()
