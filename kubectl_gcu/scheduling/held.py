"""What a pod that is bound to no node holds: devices of claims that nobody has reserved. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from controller.cache import pods
from dra_driver.model.claims.claim import Object, allocated_at, reserved_for, results
from dra_driver.model.names import DRIVER
from kubectl_gcu.cluster.pod_groups import PodGroupProgress
from kubectl_gcu.scheduling.unbound import incomplete_group
from kubectl_gcu.words import first_of

_MOST_NAMED: Final = 4
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_SOME_MINUTES: Final = 5 * _MINUTE  # up to here, seconds are easy to read
_SOME_HOURS: Final = 3 * _HOUR

# The controller's clocks, with the chart's values: controller.advanced.schedulingPatience.
NEXT: Final = (
    "after about 30 s the controller gives the devices to a pod that can use them; after about 6 "
    "minutes it takes them back in any case"
)
NEXT_OF_NOMINATED: Final = (
    f"the controller keeps the devices for it for {pods.BINDING_LIMIT // _MINUTE:.0f} minutes, "
    "because it is being bound"
)
NEXT_OF_REFUSED: Final = (
    "after 30 s, or some minutes where kube-scheduler may not have tried the pod since, the "
    "controller takes the devices back and tries another node"
)
NEXT_OF_HELD_BACK: Final = (
    "the controller takes the devices back within seconds, if no other pod waits for the claims"
)


@dataclass(frozen=True, slots=True)
class HeldDevices:
    """`since` is when the first of the claims was allocated (RFC 3339), empty where no server has
    noted it; then `seconds`, the time since, is None."""

    devices: tuple[str, ...]
    node: str
    since: str = ""
    seconds: int | None = None

    def __str__(self) -> str:
        names = first_of(self.devices, _MOST_NAMED)
        since = f", since {self.since}" if self.since else ""
        return f"{names} of node {self.node}{self.time}{since}"

    @property
    def time(self) -> str:
        """Such as `` for 45 s``; empty where that is not known."""
        return "" if self.seconds is None else f" for {_duration(self.seconds)}"


def held_devices(pod: Object, claims: Iterable[Object], now: datetime) -> HeldDevices | None:
    """What the pod holds of these claims, which are its own; None where it holds nothing, or is
    bound, ended or being deleted. Administrator's access holds nothing."""
    if pods.node_name(pod) or pods.is_done(pod) or pods.is_deleting(pod):
        return None
    held = [each for each in claims if not reserved_for(each)]
    given = [it for each in held for it in results(each) if not it.admin_access]
    if not given:
        return None
    devices = tuple(dict.fromkeys(each.device for each in given))
    node = given[0].pool.removeprefix(f"{DRIVER}/")
    times = [at for each in held if results(each) and (at := allocated_at(each))]
    if not times:
        return HeldDevices(devices, node)
    since = min(times).astimezone(UTC)
    # The two clocks may differ.
    seconds = max(0, round((now - since).total_seconds()))
    return HeldDevices(devices, node, since.strftime("%Y-%m-%dT%H:%M:%SZ"), seconds)


def what_comes_next(pod: Object, group: PodGroupProgress | None) -> str:
    """What the controller does with devices that the pod holds."""
    if pods.is_held_by_others(pod) or (group and incomplete_group(group)):
        return NEXT_OF_HELD_BACK
    if pods.nominated_node(pod):
        return NEXT_OF_NOMINATED
    return NEXT_OF_REFUSED if pods.is_unschedulable(pod) else NEXT


def _duration(seconds: int) -> str:
    if seconds < _SOME_MINUTES:
        return f"{seconds} s"
    return f"{seconds // _MINUTE} min" if seconds < _SOME_HOURS else f"{seconds // _HOUR} h"
