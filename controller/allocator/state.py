"""The cluster as the allocator sees it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.fleet import Fleet
from controller.allocator.inventory import Inventory
from controller.allocator.node_set import NodeNumbers
from controller.allocator.plain import PlainRequests
from controller.allocator.shapes import Answers, Shapes
from dra_driver.model.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.selector.selector import Selectors


@dataclass(frozen=True, slots=True)
class State:
    """`classes` maps a name to the DeviceClass. `numbers` may be shared by all who make sets of
    nodes.

    All of it may change between two decisions; one State serves them all, and what it found out
    is kept as long as it is true.
    """

    inventory: Inventory
    holdings: AllocatedDevices
    classes: Mapping[str, Object]
    selectors: Selectors
    numbers: NodeNumbers = field(default_factory=NodeNumbers)
    fleet: Fleet = field(init=False)
    plain: PlainRequests = field(init=False)
    shapes: Shapes = field(init=False)
    diagnoses: Answers = field(init=False)

    def __post_init__(self) -> None:
        # What is derived stands in fields of its own, which a frozen class sets only like this.
        fleet = Fleet(self.inventory, self.holdings, self.numbers)
        object.__setattr__(self, "fleet", fleet)
        object.__setattr__(self, "plain", PlainRequests(fleet, self.selectors))
        object.__setattr__(self, "shapes", Shapes(fleet))
        object.__setattr__(self, "diagnoses", Answers(fleet))

    def emptied(self) -> State:
        """The same cluster with nothing held; it follows what is published."""
        return State(self.inventory, AllocatedDevices(), self.classes, self.selectors, self.numbers)

    def settle(self) -> None:
        """Take in what changed; to be called before each decision."""
        self.fleet.refresh()

    def selects_any(self, expressions: tuple[str, ...]) -> bool:
        """Whether any published device satisfies all of the expressions. Raises AllowanceSpent."""
        self.settle()
        for kind in dict.fromkeys(kind for each in self.fleet.with_cards for kind in each.kinds):
            self.selectors.allowance.check()
            reads_own = any(
                not self.selectors.reads(text, kind.common.shape).isdisjoint(kind.own)
                for text in expressions
            )
            given = (
                (each.selector_input for each in self.fleet.devices_of(kind))
                if reads_own
                else (kind.common,)
            )
            for each in given:
                with suppress(InvalidValue):
                    if all(self.selectors.matches(text, each) for text in expressions):
                        return True
        return False
