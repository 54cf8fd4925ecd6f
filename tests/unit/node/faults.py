"""The machines of random histories, and what may be wrong with their tool."""

from __future__ import annotations

from typing import Any

from dra_driver.simulator.state import MachineState
from tests.unit.node.drs_world import tool
from tests.unit.node.outside import NODE_CARDS

FAULTS = (
    "create-fails",
    "create-hangs",
    "create-hangs-after-making",
    "create-reports-failure-but-makes",
    "create-reports-success-but-makes-nothing",
    "destroy-fails",
    "destroy-hangs",
    "drs-on-refused",
    "drs-off-refused",
    "efsmi-exit",
    "efsmi-garbage",
)


def _machines() -> tuple[MachineState, ...]:
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"placement": "aligned", "instanceIds": "increasing"},
        {"instancesSurviveReboot": True},
    )
    return tuple(tool(len(NODE_CARDS), **kind).machine for kind in kinds)


MACHINES = _machines()
