"""What the other replicas of a pod's workload hold, for policies that keep them apart."""

from __future__ import annotations

from collections import Counter

from controller.allocator.device import CardKey, DeviceId
from controller.allocator.inventory import Inventory
from controller.cluster.cache import ClusterCache
from dra_driver.model.claim import Object


def cards_of_replicas(pod: Object, cache: ClusterCache) -> Counter[CardKey]:
    """By card, how many other pods of the same workload have something of it, what is being written
    for them included. Pods of one workload have one controller: a Deployment's pods of one
    template have their ReplicaSet, so that a new template spreads by itself."""
    inventory = cache.state().inventory
    found: Counter[CardKey] = Counter()
    for replica in cache.replicas_of(pod):
        cards = {_card(inventory, hold.device) for hold in cache.holds_of(replica)}
        found.update(card for card in cards if card is not None)
    return found


def _card(inventory: Inventory, device: DeviceId) -> CardKey | None:
    published = inventory.by_id.get(device)
    if published is not None:
        return published.card
    card = device.card_by_name  # its slice is gone, and may come back
    return None if card is None else (device.pool, card)
