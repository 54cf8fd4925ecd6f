"""What `make bench-cluster` compares: which program allocates, and what a pod requests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bench import fleet
from bench.fleet import Object
from bench.published import OURS, OURS_COUNTED, TWINS, Devices
from dra_driver.model.names import SCHEDULING_GATE
from tests.control_plane.objects import pod_with


class Ask(StrEnum):
    """What each pod requests."""

    WHOLE = "whole"
    SLICES = "slices"

    def request(self, devices: Devices) -> Object:
        """A card, or two slices of one, of what the driver publishes."""
        mode = "whole" if self is Ask.WHOLE else "shared"
        made = fleet.request(mode, 2)
        made["exactly"]["deviceClassName"] = devices.class_of(mode)
        return made


@dataclass(frozen=True, slots=True)
class Scenario:
    """How devices are given: by our controller or by kube-scheduler itself, to pods with the gate
    or without it, with kube-scheduler at work or stopped all the time. `ours`: the controller runs,
    with these `flags`. A `variant` differs from another scenario for waiting pods alone, and is
    measured with them alone."""

    devices: Devices
    ours: bool
    flags: tuple[str, ...] = ()
    gated: bool = False
    scheduled: bool = True
    variant: bool = False

    def pod(self, name: str, namespace: str, claim: str) -> Object:
        """A pod that uses the claim."""
        gates = [{"name": SCHEDULING_GATE}] if self.gated else []
        return pod_with(name, namespace, claim, schedulingGates=gates)


def _nominating(*flags: str, variant: bool = False) -> Scenario:
    return Scenario(
        OURS_COUNTED,
        ours=True,
        flags=("--allocator=scheduler", *flags),
        gated=True,
        variant=variant,
    )


SCENARIOS: Final = {
    "kube_scheduler_counters": Scenario(OURS_COUNTED, ours=False),
    "nominated": _nominating(),
    "nominated_held": _nominating("--nomination-waiting=0", variant=True),
    "nominated_lifted": _nominating("--nomination-waiting=100000", variant=True),
    "ours": Scenario(OURS, ours=True, gated=True),
    "ours_without_gate": Scenario(OURS, ours=True),
    "kube_scheduler": Scenario(TWINS, ours=False),
    "ours_alone": Scenario(OURS, ours=True, scheduled=False),
}
"""By the name of their column. Scenarios with the same devices stand together: publishing takes
time."""

USUAL: Final = tuple(SCENARIOS)[:6]
"""Those in question where this driver is installed."""
