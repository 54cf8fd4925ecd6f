"""Keeps the annotations and the vendor's label of the Node up to date."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection

from dra_driver.device_plugin.inventory import NodeDevices, NodeViewSource
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


def node_annotator(
    api: Api,
    node_name: str,
    *,
    view: NodeViewSource,
    recorded: ReadCheckpoint,
    kubelet: KubeletIdentity = lambda: None,
    clock: Clock = time.monotonic,
    wait: Wait | None = None,
) -> NodeMetadataWriter:
    """Annotates the Node once the cards have been read. If `recorded` fails, the annotations name
    no pods."""
    return NodeMetadataWriter(
        "node-annotator",
        api,
        node_name,
        wanted=lambda: _wanted(view(), recorded),
        field_manager=FIELD_MANAGER,
        kubelet=kubelet,
        clock=clock,
        wait=wait,
    )


def _wanted(view: NodeDevices, recorded: ReadCheckpoint) -> NodeMetadata | None:
    if view.cards is None:
        return None
    try:
        owners = recorded()
    except KubeletError as error:
        logger.debug("which pods have devices is unknown: %s", error)
        owners = ()
    cards = node_cards(view, owners)
    return {"annotations": node_annotations(view, cards), "labels": node_labels(cards)}
