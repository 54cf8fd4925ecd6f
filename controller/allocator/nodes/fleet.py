"""All nodes with devices, and sets of them: by the signatures of their cards, and by how full they
are."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.device import Device, DeviceKind
from controller.allocator.inventory import Inventory
from controller.allocator.nodes.node_info import NodeInfo
from controller.allocator.nodes.node_set import Levels, NodeNumbers, NodeSet
from controller.allocator.nodes.signature import CardSignature, Signatures
from controller.allocator.packing.strategy import STRATEGIES, Strategy

_FEW: Final = 1024  # signatures; below that, unused ones stay
_NONE: Final[Mapping[CardSignature, int]] = Counter()


class Fleet:
    """Follows `inventory` and `allocated` with `refresh`. `generation` grows with each change of a
    node, `rebuilds` when sets of nodes or lists of signatures made before have no meaning any more.

    `with_cards` has a list for each signature: at index n the set of nodes with more than n such
    cards. New signatures come last. One that no card has any more stays, as it is likely to come
    back, until the next rebuild.
    """

    def __init__(
        self, inventory: Inventory, allocated: AllocatedDevices, numbers: NodeNumbers
    ) -> None:
        self.generation = 0
        self.rebuilds = 0
        self.with_cards: dict[CardSignature, list[NodeSet]] = {}
        self._levels = _no_levels()
        self.all_nodes: NodeSet = 0
        self.numbers = numbers
        self._inventory = inventory
        self._allocated = allocated
        self._signatures = Signatures(for_scheduler=inventory.for_scheduler)
        self._most_signatures = _FEW
        self._cards: Counter[CardSignature] = Counter()
        self._nodes: OrderedDict[str, NodeInfo] = OrderedDict()  # the last that changed at the end
        self._epoch = numbers.epoch
        self._changed_nodes = inventory.watch()
        self._changed_devices = allocated.watch()

    def __len__(self) -> int:
        return len(self._nodes)

    def refresh(self) -> None:
        """Take in what was published or allocated since the last time."""
        self._inventory.refresh()
        if self.numbers.epoch != self._epoch:
            self._rebuild()
        elif not (self._changed_nodes or self._changed_devices):
            return
        for name in sorted(self._changed_nodes):
            self._publish(name)
        self._changed_nodes.clear()
        changed: dict[str, set[int]] = defaultdict(set)
        for device in self._changed_devices:
            node = self._nodes.get(self._inventory.node_of(device.pool) or "")
            if node is not None and (card := node.card_of(device)) is not None:
                changed[node.name].add(card)
        self._changed_devices.clear()
        for name, cards in changed.items():
            node = self._nodes[name]
            before, full = _signatures(node), (node.free, node.load)
            if node.refresh(cards, self._allocated, self._signatures):
                self._remove(1 << node.number, *full)
                self._add(node, before)

    def touch(self, names: Collection[str]) -> None:
        """Something else than our devices has changed on these nodes."""
        for name in names:
            if (node := self._nodes.get(name)) is not None:
                self._mark_changed(node)

    def levels(self, strategy: Strategy) -> Levels:
        """The nodes in the order of the strategy."""
        return self._levels[strategy]

    def node(self, name: str) -> NodeInfo | None:
        """None for a node without devices."""
        return self._nodes.get(name)

    def at(self, number: int) -> NodeInfo:
        """The node with that number."""
        return self._nodes[self.numbers.name(number)]

    def changed_since(self, generation: int) -> Iterator[NodeInfo]:
        """The nodes with a later generation."""
        for node in reversed(self._nodes.values()):
            if node.generation <= generation:
                return
            yield node

    def devices_of(self, kind: DeviceKind) -> Iterator[Device]:
        """All devices of the kind, on whatever node."""
        for node in self._nodes.values():
            yield from (device for device in node.devices if device.kind is kind)

    def nodes_with(self, signature: CardSignature) -> NodeSet:
        """The nodes with any such card."""
        cards = self.with_cards[signature]
        return cards[0] if cards else 0

    def count_cards(self, nodes: NodeSet) -> Mapping[CardSignature, int]:
        """How many cards of each signature the nodes have."""
        if not self.all_nodes & ~nodes:
            return self._cards
        return {
            signature: sum([(nodes & each).bit_count() for each in sets])
            for signature, sets in self.with_cards.items()
        }

    def _publish(self, name: str) -> None:
        old = self._nodes.pop(name, None)
        before = _NONE
        if old is not None:
            before = _signatures(old)
            self._remove(1 << old.number, old.free, old.load)
        if devices := self._inventory.devices_of(name):
            number = self.numbers.number(name)
            node = NodeInfo(name, number, devices, self._allocated, self._signatures)
            self._add(node, before)
        elif old is not None:
            self._count(1 << old.number, before, _NONE)
            self.all_nodes &= ~(1 << old.number)
            self.generation += 1

    def _remove(self, bit: NodeSet, free: int, load: int) -> None:
        for strategy, levels in self._levels.items():
            levels.remove(strategy.level(free, load), bit)

    def _add(self, node: NodeInfo, before: Mapping[CardSignature, int]) -> None:
        """The node is new, or other than `before`."""
        bit = 1 << node.number
        for strategy, levels in self._levels.items():
            levels.add(strategy.level(node.free, node.load), bit)
        self.all_nodes |= bit
        self._count(bit, before, _signatures(node))
        self._nodes[node.name] = node
        self._mark_changed(node)

    def _mark_changed(self, node: NodeInfo) -> None:
        self.generation += 1
        node.generation = self.generation
        self._nodes.move_to_end(node.name)

    def _count(
        self,
        bit: NodeSet,
        before: Mapping[CardSignature, int],
        after: Mapping[CardSignature, int],
    ) -> None:
        """How many cards of each signature the node had before, and has now."""
        for signature, had in before.items():
            has = after.get(signature, 0)
            if has < had:
                self._cards[signature] -= had - has
                sets = self.with_cards[signature]
                for n in range(has, had):
                    sets[n] &= ~bit
                while sets and not sets[-1]:
                    sets.pop()
        for signature, has in after.items():
            had = before.get(signature, 0)
            if has > had:
                self._cards[signature] += has - had
                sets = self._sets(signature)
                sets += [0] * (has - len(sets))
                for n in range(had, has):
                    sets[n] |= bit

    def _sets(self, signature: CardSignature) -> list[NodeSet]:
        nodes = self.with_cards.get(signature)
        if nodes is None:
            if len(self.with_cards) >= self._most_signatures:
                self.with_cards = {known: sets for known, sets in self.with_cards.items() if sets}
                self._cards = +self._cards
                self._most_signatures = 2 * len(self.with_cards) + _FEW
                self.rebuilds += 1
            nodes = self.with_cards[signature] = []
        return nodes

    def _rebuild(self) -> None:
        """All nodes have new numbers."""
        self._epoch = self.numbers.epoch
        self.rebuilds += 1
        self.with_cards = {}
        self._cards.clear()
        self._levels, self.all_nodes = _no_levels(), 0
        for node in list(self._nodes.values()):
            node.number = self.numbers.number(node.name)
            self._add(node, _NONE)


def _no_levels() -> Mapping[Strategy, Levels]:
    return {each: Levels(each.level_width) for each in STRATEGIES.values()}


def _signatures(node: NodeInfo) -> Mapping[CardSignature, int]:
    return Counter([card.signature for card in node.cards])
