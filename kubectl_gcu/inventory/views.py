"""What `kubectl gcu` shows: nodes, their cards, and who holds how much of a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress


class ServedBy(StrEnum):
    """How pods ask for the GCUs of a node."""

    CLAIMS = "claims"
    LIMITS = "limits"


@dataclass(frozen=True, slots=True)
class HoldingPod:
    """A pod that uses what is held, with the names of those containers that do; `ended` are those
    of them that do not start again. Without a name where the user may not read the pod, and only
    its UID is published."""

    namespace: str
    name: str
    uid: str
    containers: tuple[str, ...] = ()
    phase: str = ""
    created: str = ""
    ended: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.name else f"pod of UID {self.uid}"


@dataclass(frozen=True, slots=True)
class HolderInstance:
    """A DRS instance as its node's agent reports it, by efsmi's numbers. `profile_id` is None of a
    card that is lost; `uuid` is empty where efsmi prints none."""

    profile: str
    id: int | None = None
    profile_id: int | None = None
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """What one claim, or one pod with limits, has of a card: `amount` slices, an `instance` of that
    size, or 1 for the whole card.

    `claim` is ``namespace/name``, and empty for limits. `admin` claims hold nothing: they use a
    card beside whoever holds it. `instance` is None until it exists.
    """

    mode: Mode
    amount: int
    claim: str
    pods: tuple[HoldingPod, ...]
    instance: HolderInstance | None = None
    admin: bool = False

    @property
    def profile(self) -> str:
        """The instance's, such as ``3g.20gb``; empty without one."""
        return self.instance.profile if self.instance else ""


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """Memory in MiB, 0 where that of cards is not published, and compute in percent of one card."""

    memory_mib: int
    cores: int

    def __add__(self, other: FreeCapacity) -> FreeCapacity:
        return FreeCapacity(self.memory_mib + other.memory_mib, self.cores + other.cores)


@dataclass(frozen=True, slots=True)
class CardView:
    """A card. `slices` and `size` are what it has in shared mode and in DRS mode, 0 where it is not
    offered so, and `whole` is whether it is offered as a whole. `sizes` are those of its DRS
    instances, ascending; empty where nobody publishes them. Index, minor and memory are None where
    nobody publishes them: ResourceSlices have no index and no minor, so these are known of a card
    with a prepared claim alone. `problems` are reasons why nothing new is placed on it. `mode` is
    None while the card is free; it may outlive the last holder, until the instance is destroyed.
    """

    address: PciAddress
    index: int | None = None
    minor: int | None = None
    model: str = ""
    uuid: str = ""
    memory_mib: int | None = None
    slices: int = 0
    size: int = 0
    problems: tuple[str, ...] = ()
    mode: Mode | None = None
    holders: tuple[Holder, ...] = ()
    whole: bool = True
    sizes: tuple[int, ...] = ()

    @property
    def is_offered(self) -> bool:
        """Whether it is seen to be offered in any mode. A card that only a claim names is not."""
        return bool(self.whole or self.slices or self.size)

    @property
    def used(self) -> int:
        """In slices, in sizes, or in cards, by the mode."""
        return sum(each.amount for each in self.holders if not each.admin)

    @property
    def total(self) -> int:
        """The most that `used` can be; 0 while the card is free."""
        amounts = {Mode.WHOLE: 1, Mode.SHARED: self.slices, Mode.DRS: self.size, None: 0}
        return amounts[self.mode]

    @property
    def free(self) -> FreeCapacity:
        """What new claims may get: nothing of a card with problems, and none that is held as a
        whole. Of DRS instances it is by size; their memory differs a little by the profile."""
        if self.problems or (self.mode and not self.total):
            return FreeCapacity(0, 0)
        left = max(0, self.total - self.used)  # more than there is may be allocated
        share = Fraction(left, self.total) if self.mode else Fraction(1)
        return FreeCapacity(int((self.memory_mib or 0) * share), int(100 * share))

    def left_in(self, mode: Mode) -> int:
        """The most that one request in that mode can get of the card: 1 for the card itself,
        slices, or the largest size that has room."""
        if self.problems or self.mode not in {None, mode}:
            return 0
        offered = {Mode.WHOLE: int(self.whole), Mode.SHARED: self.slices, Mode.DRS: self.size}
        left = max(0, offered[mode] - self.used)
        if mode is Mode.DRS and self.sizes:
            return max((size for size in self.sizes if size <= left), default=0)
        return left


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node with GCUs; its cards in the order of their addresses. `unschedulable` is whether it
    is cordoned: nothing new is placed there."""

    name: str
    served_by: ServedBy
    cards: tuple[CardView, ...]
    unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """Of some cards: how many there are, have problems, are free without problems, or are in each
    mode; how much of those in shared mode and in DRS mode is used, and usable; and what is free of
    all of them."""

    cards: int
    problems: int
    free: int
    whole: int
    shared: int
    drs: int
    slices: tuple[int, int]
    sizes: tuple[int, int]
    free_capacity: FreeCapacity

    @classmethod
    def of(cls, cards: Iterable[CardView]) -> Totals:
        cards = tuple(cards)
        modes = Counter(card.mode for card in cards)
        used = {
            mode: (
                sum(card.used for card in cards if card.mode is mode),
                sum(card.total for card in cards if card.mode is mode),
            )
            for mode in Mode
        }
        return cls(
            cards=len(cards),
            problems=sum(bool(card.problems) for card in cards),
            free=sum(card.mode is None and not card.problems for card in cards),
            whole=modes[Mode.WHOLE],
            shared=modes[Mode.SHARED],
            drs=modes[Mode.DRS],
            slices=used[Mode.SHARED],
            sizes=used[Mode.DRS],
            free_capacity=sum((card.free for card in cards), start=FreeCapacity(0, 0)),
        )

    def __add__(self, other: Totals) -> Totals:
        """Of the cards of both."""
        return Totals(
            cards=self.cards + other.cards,
            problems=self.problems + other.problems,
            free=self.free + other.free,
            whole=self.whole + other.whole,
            shared=self.shared + other.shared,
            drs=self.drs + other.drs,
            slices=(self.slices[0] + other.slices[0], self.slices[1] + other.slices[1]),
            sizes=(self.sizes[0] + other.sizes[0], self.sizes[1] + other.sizes[1]),
            free_capacity=self.free_capacity + other.free_capacity,
        )


@dataclass(frozen=True, slots=True)
class Largest:
    """The most that one request can get, and the first node that has it; 0 and no name where
    there is none."""

    amount: int = 0
    node: str = ""


@dataclass(frozen=True, slots=True)
class LargestRequests:
    """The largest request of each mode that still fits, by what is free of the cards alone: so many
    whole cards of one node, so many slices of one card, an instance of that size. Cordoned nodes
    are left out."""

    whole: Largest = Largest()
    shared: Largest = Largest()
    drs: Largest = Largest()

    @classmethod
    def of(cls, node: NodeView) -> LargestRequests:
        """Those of one node."""
        if node.unschedulable:
            return cls()

        def largest(mode: Mode, reduce: Callable[[Iterable[int]], int]) -> Largest:
            amount = reduce([0, *(card.left_in(mode) for card in node.cards)])
            return Largest(amount, node.name if amount else "")

        return cls(largest(Mode.WHOLE, sum), largest(Mode.SHARED, max), largest(Mode.DRS, max))

    def __or__(self, other: LargestRequests) -> LargestRequests:
        """Those of the nodes of both; of equal ones the first."""
        return LargestRequests(
            max(self.whole, other.whole, key=_amount),
            max(self.shared, other.shared, key=_amount),
            max(self.drs, other.drs, key=_amount),
        )


def _amount(largest: Largest) -> int:
    return largest.amount
