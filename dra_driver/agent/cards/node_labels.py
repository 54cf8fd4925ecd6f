"""Labels of the Node by its cards, where the chart asks for them (docs/adr/0047)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dra_driver.kube.node_metadata import NodeMetadata
from dra_driver.model.card import Card, Cards
from dra_driver.model.names import (
    LABEL_CARD_COUNT,
    LABEL_CARD_MEMORY,
    LABEL_CARD_MODEL,
    LABEL_DRIVER_VERSION,
    VALID_LABEL,
)


def node_labels(cards: Cards | None) -> NodeMetadata | None:
    return None if cards is None else {"labels": card_labels(cards.values())}


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
