"""Runs one decision and gives it in a form that a table can hold."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.allocate import Allocation, FitError, allocate
from controller.allocator.claim_request import parse_claim
from controller.allocator.packing.policy import BINPACK, Policy
from controller.allocator.state import State
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import device, state

SHARED = "shared-gcu.enflame.com"
DRS = "drs-gcu.enflame.com"
MODES = ("whole", "shared", "drs")
SELECTORS = Selectors()
SAME_SWITCH = {"matchAttribute": "gcu.enflame.com/pcieSwitch"}


def cards(count: int, *modes: str) -> list[Object]:
    """Two cards a switch, two switches a NUMA node."""
    return [
        device(mode, bus, switch=f"0000:{bus // 2:02x}:1f.0", numa=bus // 4)
        for bus in range(count)
        for mode in modes or ("whole",)
    ]


def decide(
    slices: Sequence[Object],
    held: Sequence[Object],
    *wanted: Object,
    nodes: Sequence[str] = ("a", "b", "c"),
    policy: Policy = BINPACK,
    for_scheduler: bool = False,
) -> tuple[str, list[str]] | str:
    """The node and devices chosen, or the reason why none was."""
    found: State = state(slices, held, selectors=SELECTORS, for_scheduler=for_scheduler)
    parsed = [parse_claim(each, found.classes) for each in wanted]
    match allocate(found, parsed, found.numbers.set_of(nodes), policy=policy):
        case Allocation(node, grants):
            return node, [
                grant.device.id.name.removesuffix("-00-0") for each in grants for grant in each
            ]
        case FitError() as outcome:
            return outcome.explain()


def whole(*buses: int) -> list[str]:
    return [f"whole-0000-{bus:02x}" for bus in buses]


def names(mode: str, *buses: int) -> list[str]:
    return [f"{mode}-0000-{bus:02x}-00-0" for bus in buses]


SHARE = {"slices": "1"}
