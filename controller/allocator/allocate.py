"""The decision: which devices of which node, for all claims of one pod together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.allocator.order import ordered_nodes
from controller.allocator.reasons import explain
from controller.allocator.request import Wanted
from controller.allocator.search import Budget, Grant, NodeSearch, SearchLimitReached
from controller.allocator.state import State
from dra_driver.model.errors import InvalidValue

MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Allocation:
    """All claims on one node; `grants` has one tuple for each claim, in the order given."""

    node: str
    grants: tuple[tuple[Grant, ...], ...]


@dataclass(frozen=True, slots=True)
class Unsatisfied:
    """Nothing was allocated; `reason` says why, for people."""

    reason: str


def allocate(
    state: State, wanted: Sequence[Wanted], nodes: Sequence[str], *, steps: int = MOST_STEPS
) -> Allocation | Unsatisfied:
    """Devices for all of `wanted` on one of `nodes`, or the reason why there are none.

    All or nothing. Finds an allocation whenever one exists, unless `steps` choices did not
    suffice, which the reason then says.
    """
    budget = Budget(steps)
    try:
        for node in ordered_nodes(state, nodes):
            grants = NodeSearch(state, wanted, node, budget).run()
            if grants is not None:
                return Allocation(node, grants)
        return Unsatisfied(explain(state, wanted, nodes, ""))
    except SearchLimitReached:
        stopped = f"the search was stopped after {budget.steps} steps"
        return Unsatisfied(explain(state, wanted, nodes, stopped))
    except InvalidValue as error:
        return Unsatisfied(str(error))
