"""A publisher between a scripted API server and cards that a test sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from dra_driver.agent.slices.device_layout import Devices, with_layouts_in_use
from dra_driver.agent.slices.publisher import PublishLock, SlicePublisher
from dra_driver.agent.slices.slices import SliceForm
from dra_driver.kube.api import Api
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import parse_device_name, taint
from dra_driver.model.errors import GcuError
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    TAINT_ALLOCATED_BY,
)
from dra_driver.model.pci import PciAddress
from dra_driver.util.backoff import Backoff
from tests.unit.agent.objects import device
from tests.unit.agent.scripted_api import ScriptedApi

ALLOCATED_BY = taint(TAINT_ALLOCATED_BY, ALLOCATOR_CONTROLLER)
FIRST = ["version", "list", "get nodes", "dry run", "create"]
UNPUBLISHED = "the cards have not been published yet"


class Rig:
    """A publisher whose thread is the test's own, and which stops when `waits` are over."""

    def __init__(
        self,
        api: ScriptedApi,
        *,
        waits: int = 0,
        publish_lock: PublishLock | None = None,
        form: SliceForm = SliceForm.VISIBLE,
    ) -> None:
        self.api = api
        self.devices: Sequence[Object] | None = [device(1)]
        self.held: frozenset[PciAddress] | GcuError = frozenset()
        self.waits: list[float] = []
        self.on_wait: Callable[[], None] = lambda: None
        self._waits_left = waits
        self.publisher = SlicePublisher(
            cast("Api", api),
            "n1",
            devices=self._devices,
            form=form,
            publish_lock=publish_lock,
            backoff=Backoff(first=1.0, longest=60.0, draw=lambda: 0.0),
            wait=self._wait,
        )

    def listed(self, *slices: Object) -> Rig:
        """The reflector has listed these."""
        self.publisher.published.on_replace(slices)
        return self

    def run(self) -> list[float]:
        """Let the thread's work run until its waits are over; gives the delays."""
        self.publisher.run()
        return self.waits

    def _devices(self, published: Devices) -> Devices | None:
        if isinstance(self.held, GcuError):
            raise self.held
        if self.devices is None:
            return None
        cards = {parse_device_name(each["name"])[1]: [each] for each in self.devices}
        return with_layouts_in_use(cards, published, self.held)

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.on_wait()
        return len(self.waits) >= self._waits_left
