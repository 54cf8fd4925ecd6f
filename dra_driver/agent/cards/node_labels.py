"""Labels of the Node by its cards, where the chart asks for them (docs/adr/0047)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dra_driver.agent.sources import CardSource
from dra_driver.kube.api import Api
from dra_driver.kube.node_metadata import KubeletIdentity, NodeMetadata, NodeMetadataWriter
from dra_driver.model.card import Card
from dra_driver.model.names import (
    FIELD_MANAGER_LABELS,
    LABEL_CARD_COUNT,
    LABEL_CARD_MEMORY,
    LABEL_CARD_MODEL,
    LABEL_DRIVER_VERSION,
    VALID_LABEL,
)


def card_labels(cards: Collection[Card]) -> Mapping[str, str]:
    """The models, the number of cards, the memory of the smallest one in MiB, and the version of
    the kernel driver. A text that cannot be a label is left out. Without cards there are none."""
    if not cards:
        return {}
    models = {f"{LABEL_CARD_MODEL}{card.model}" for card in cards}
    labels = dict.fromkeys(sorted(filter(_is_valid_key, models)), "true") | {
        LABEL_CARD_COUNT: str(len(cards)),
        LABEL_CARD_MEMORY: str(min(card.memory_mib for card in cards)),
    }
    version = min(card.driver_version for card in cards)  # one kernel has one driver
    return labels | ({LABEL_DRIVER_VERSION: version} if VALID_LABEL.fullmatch(version) else {})


def _is_valid_key(key: str) -> bool:
    return VALID_LABEL.fullmatch(key.partition("/")[2]) is not None


def node_labeller(
    api: Api, node_name: str, *, cards: CardSource, kubelet: KubeletIdentity
) -> NodeMetadataWriter:
    """With DRA and without. Its field manager is not that of the annotations, so that each keeps
    what the other one wrote."""

    def wanted() -> NodeMetadata | None:
        found = cards()
        return None if found is None else {"labels": card_labels(found.values())}

    return NodeMetadataWriter(
        "node-labels",
        api,
        node_name,
        wanted=wanted,
        field_manager=FIELD_MANAGER_LABELS,
        kubelet=kubelet,
    )
