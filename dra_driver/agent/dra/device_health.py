"""The health of the devices, which the kubelet shows in the pods' status, from the cards."""

from __future__ import annotations

import logging
import time
from dataclasses import KW_ONLY, dataclass
from typing import Final

from dra_driver.agent.context import AgentContext
from dra_driver.kubelet_api.dra.health_service import DeviceHealth, Health
from dra_driver.model.card import Card
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.errors import InvalidValue, JournalError
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_NEVER_SEEN: Final = "the card has not been found since the agent started"


@dataclass(frozen=True, slots=True)
class DeviceHealths:
    """The `HealthSource` of the published devices in `pool`, and of the devices that claims in the
    journal use, which are known without an API server.

    A card's problem concerns all its devices. The health is unknown if the last inventory is more
    than `stale` seconds old: the list is sent again and again even while the cards cannot be read,
    and the kubelet takes each list as new. `now` is the Unix time in seconds.
    """

    context: AgentContext
    _: KW_ONLY
    pool: str
    stale: float
    now: Clock = time.time

    def __call__(self) -> list[DeviceHealth]:
        cache, published = self.context.cards, self.context.published.devices
        cards, age, doubt = cache.latest, cache.age, cache.problem
        if doubt is None and age > self.stale:
            doubt = f"the cards were last read more than {self.stale:g} s ago"
        updated = int(self.now() - age) if cards is not None else 0
        devices = {(self.pool, str(device["name"])) for device in published} | self._held()
        found = []
        for pool, name in sorted(devices):
            try:
                _, address = parse_device_name(name)
            except InvalidValue:  # published by another version of the driver
                continue
            missing = cache.unusable.get(address, _NEVER_SEEN)
            health, message = _health(address, (cards or {}).get(address), doubt, missing)
            found.append(DeviceHealth(pool, name, health, updated, message))
        return found

    def _held(self) -> set[tuple[str, str]]:
        """Pool and name of each device."""
        try:
            claims = self.context.journal.snapshot().claims.values()
        except JournalError as error:
            logger.warning(
                "the health of devices that only the journal knows is not reported: %s", error
            )
            return set()
        return {(device.pool, device.device_name) for claim in claims for device in claim.devices}


def _health(
    address: PciAddress, card: Card | None, doubt: str | None, missing: str
) -> tuple[Health, str]:
    problems = [
        problem.text
        for problem in (card.problems if card is not None else ())
        if problem.taint == TAINT_UNHEALTHY
    ]
    if problems:
        return Health.UNHEALTHY, f"card {address}: {'; '.join(problems)}"
    if doubt is not None:
        return Health.UNKNOWN, f"card {address}: {doubt}"
    if card is None:
        return Health.UNHEALTHY, f"card {address}: {missing}"
    return Health.HEALTHY, ""
