"""All nodes with devices, and where among them is what: sets of nodes by the signatures of their
cards, and by how full they are."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.device import Device, DeviceId, DeviceKind
from controller.allocator.inventory import Inventory
from controller.allocator.node_info import NodeInfo
from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.allocator.signature import CardSignature, Signatures

Level = tuple[int, int]
_FEW: Final = 1024  # signatures that need no tidying


class Levels:
    """Sets of nodes by a level, and the levels in order."""

    def __init__(self) -> None:
        self._nodes: dict[Level, NodeSet] = {}
        self._order: list[Level] = []

    def add(self, level: Level, bit: NodeSet) -> None:
        found = self._nodes.get(level)
        if found is None:
            insort(self._order, level)
            self._nodes[level] = bit
        else:
            self._nodes[level] = found | bit

    def remove(self, level: Level, bit: NodeSet) -> None:
        left = self._nodes[level] & ~bit
        if left:
            self._nodes[level] = left
        else:
            del self._nodes[level]
            del self._order[bisect_left(self._order, level)]

    def levels(self) -> Sequence[Level]:
        """In order."""
        return self._order

    def nodes(self, level: Level) -> NodeSet:
        return self._nodes[level]

    def walk(self, nodes: NodeSet) -> Iterator[NodeSet]:
        """The set split by level, the lowest first."""
        for level in tuple(self._order):
            found = nodes & self._nodes[level]
            if found:
                yield found
                nodes &= ~found
                if not nodes:
                    return


class Fleet:
    """Follows inventory and holdings with `refresh`. `generation` grows with each change of a node.

    `with_cards` has for each signature a list: at place n the set of nodes with more than n such
    cards. A signature stays when no card has it any more, as it may come back soon, until
    `dropped` grows; new ones are put at the end.
    `by_free` has nodes by (free cards, minus load), `by_load` by (load, minus free cards).
    """

    def __init__(
        self, inventory: Inventory, holdings: AllocatedDevices, numbers: NodeNumbers
    ) -> None:
        self.generation = 0
        self.with_cards: dict[CardSignature, list[NodeSet]] = {}
        self.by_free = Levels()
        self.by_load = Levels()
        self.everywhere: NodeSet = 0
        self.dropped = 0
        self.numbers = numbers
        self._inventory = inventory
        self._holdings = holdings
        self._signatures = Signatures()
        self._most_signatures = _FEW
        self._cards: Counter[CardSignature] = Counter()
        self._nodes: OrderedDict[str, NodeInfo] = OrderedDict()  # the last that changed at the end
        self._epoch = numbers.epoch
        self._published: set[str] = set()
        self._held: set[DeviceId] = set()
        inventory.watch(self._published)
        holdings.watch(self._held)

    def refresh(self) -> None:
        """Take in what changed, published or held."""
        self._inventory.settle()
        if self.numbers.epoch != self._epoch:
            self._rebuild()
        if self._published:
            for name in sorted(self._published):
                self._publish(name)
            self._published.clear()
        for name, cards in self._held_anew().items():
            self._hold(self._nodes[name], cards)

    def _held_anew(self) -> dict[str, set[int]]:
        """The numbers of the cards of which something else is held than before, by node."""
        found: dict[str, set[int]] = {}
        for device in self._held:
            node = self._nodes.get(self._inventory.node_of(device.pool) or "")
            card = None if node is None else node.card_of(device)
            if node is not None and card is not None:
                found.setdefault(node.name, set()).add(card)
        self._held.clear()
        return found

    def node(self, name: str) -> NodeInfo | None:
        """None for a node without devices."""
        return self._nodes.get(name)

    def at(self, number: int) -> NodeInfo:
        """The node of that number."""
        return self._nodes[self.numbers.name(number)]

    def changed_since(self, generation: int) -> Iterator[NodeInfo]:
        """Nodes that changed after that, which are still there."""
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

    def with_at_least(self, count: int, signatures: Iterable[CardSignature]) -> NodeSet:
        """The nodes with as many of these cards."""
        known = [each for each in signatures if self.with_cards[each]]
        if len(known) == 1:
            cards = self.with_cards[known[0]]
            return cards[count - 1] if len(cards) >= count else 0
        if sum(len(self.with_cards[each]) for each in known) < count:
            return 0
        return self.by_devices([(each, 1) for each in known], count)[-1]

    def by_devices(
        self, signatures: Iterable[tuple[CardSignature, int]], most: int
    ) -> list[NodeSet]:
        """The nodes on which these cards have so many devices or more, for each number from 0 to
        `most`; each card has as many as is told with its signature."""
        found = [self.everywhere] + [0] * most
        for signature, devices in signatures:
            cards = self.with_cards[signature]
            more = [cards[n // devices] for n in range(min(most, devices * len(cards)))]
            for total in range(most, 0, -1):
                for nth, nodes in enumerate(more[:total]):
                    if found[total - nth - 1]:
                        found[total] |= found[total - nth - 1] & nodes
        return found

    def cards_in(self, nodes: NodeSet, signature: CardSignature) -> int:
        """How many such cards the nodes have."""
        if nodes & self.everywhere == self.everywhere:
            return self._cards[signature]
        return sum([(nodes & each).bit_count() for each in self.with_cards[signature]])

    def __len__(self) -> int:
        return len(self._nodes)

    def _publish(self, name: str) -> None:
        old = self._nodes.pop(name, None)
        if old is not None:
            self._leave(old)
        devices = self._inventory.devices_of(name)
        if devices:
            number = self.numbers.number(name)
            self._enter(NodeInfo(name, number, devices, self._holdings, self._signatures))
        else:
            self.generation += 1

    def _hold(self, node: NodeInfo, cards: Collection[int]) -> None:
        bit = 1 << node.number
        self._unlevel(node, bit)
        before = Counter(card.signature for card in node.cards)
        if changed := node.refresh(cards, self._holdings, self._signatures):
            for old, new in changed:
                before[old] -= 1
                self._count(old, before[old], bit, present=False)
                self._count(new, before[new], bit, present=True)
                before[new] += 1
            self._nodes.move_to_end(node.name)
            self.generation += 1
            node.generation = self.generation
        self._level(node, bit)

    def _enter(self, node: NodeInfo) -> None:
        bit = 1 << node.number
        counted: Counter[CardSignature] = Counter()
        for card in node.cards:
            self._count(card.signature, counted[card.signature], bit, present=True)
            counted[card.signature] += 1
        self._level(node, bit)
        self.everywhere |= bit
        self.generation += 1
        node.generation = self.generation
        self._nodes[node.name] = node

    def _leave(self, node: NodeInfo) -> None:
        bit = 1 << node.number
        counted = Counter(card.signature for card in node.cards)
        for card in node.cards:
            counted[card.signature] -= 1
            self._count(card.signature, counted[card.signature], bit, present=False)
        self._unlevel(node, bit)
        self.everywhere &= ~bit

    def _count(self, signature: CardSignature, others: int, bit: NodeSet, *, present: bool) -> None:
        """The node has, or has no longer, one more such card than `others`."""
        found = self.with_cards.get(signature)
        if found is None:
            if len(self.with_cards) >= self._most_signatures:
                self._drop_unused()
            found = self.with_cards[signature] = []
        self._cards[signature] += 1 if present else -1
        if not present:
            found[others] &= ~bit
            while found and not found[-1]:
                found.pop()
        elif others < len(found):
            found[others] |= bit
        else:
            found.append(bit)

    def _drop_unused(self) -> None:
        self.with_cards = {each: cards for each, cards in self.with_cards.items() if cards}
        self._cards = +self._cards
        self._most_signatures = 2 * len(self.with_cards) + _FEW
        self.dropped += 1

    def _level(self, node: NodeInfo, bit: NodeSet) -> None:
        self.by_free.add((node.free, -node.load), bit)
        self.by_load.add((node.load, -node.free), bit)

    def _unlevel(self, node: NodeInfo, bit: NodeSet) -> None:
        self.by_free.remove((node.free, -node.load), bit)
        self.by_load.remove((node.load, -node.free), bit)

    def _rebuild(self) -> None:
        """All nodes have other numbers."""
        self._epoch = self.numbers.epoch
        self.with_cards.clear()
        self._cards.clear()
        self.dropped += 1
        self.by_free, self.by_load, self.everywhere = Levels(), Levels(), 0
        for node in list(self._nodes.values()):
            node.number = self.numbers.number(node.name)
            self._enter(node)
