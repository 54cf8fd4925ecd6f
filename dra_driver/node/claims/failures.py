"""A circuit breaker for devices on which prepare or unprepare fails again and again.

A claim is bound to its node and device before the agent is called, and the kubelet repeats a
failed prepare forever: only another pod, on another card, ends that (docs/adr/0011). The kubelet
repeats a failed unprepare, too, and the pod cannot terminate meanwhile (docs/adr/0020).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec

from dra_driver.model.claims.owner import Owner
from dra_driver.model.errors import ForeignCard, GcuError, HardwareError, InvalidValue
from dra_driver.node.checkpoint.records import PreparedDevice, PreparedDevices
from dra_driver.util.hooks import Clock

TRIES: Final = 3
"""How often in a row a prepare or unprepare of one owner may fail. The kubelet repeats a failed
prepare after 60 to 90 s and a failed unprepare after 10 to 15 s (1.36, ``kuberuntime_manager.go``
and ``pod_workers.go``)."""

_OPEN_FOR: Final = 600.0  # seconds for which a device takes no new claim
_FORGET_AFTER: Final = 3600.0  # seconds after the last failure of a prepare


OnTripped = Callable[[str, str], None]
"""Called with a device's name and the reason each time that it trips or gets an orphan."""


class Waiting(msgspec.Struct, frozen=True):
    """An owner whose prepare fails: how often in a row, and when last (`at`, seconds of the
    clock)."""

    owner: Owner
    devices: PreparedDevices
    device: str
    reason: str
    tries: int
    at: float


@contextmanager
def attribute_to(device: str | None) -> Iterator[None]:
    """Around a step on the card of `device`: names the device in errors that the card, or the
    request, causes. None names no device.

    An error because another owner holds the card, or because a record cannot be written, names no
    device: it says nothing about the card.
    """
    try:
        yield
    except (HardwareError, InvalidValue, ForeignCard) as error:
        error.device = error.device or device
        raise


class DeviceCircuitBreaker:
    """Counts failures by owner and trips by device. Thread-safe.

    A device trips after `TRIES` failures for one owner: for ten minutes it should take no new
    claim. It trips again when the first try after that fails. It is reset when a device was
    created, or when another owner has returned what it had of it, as there may be room now.
    """

    def __init__(
        self,
        *,
        on_tripped: OnTripped = lambda _device, _reason: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._on_tripped = on_tripped
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self._tripped_until: dict[str, float] = {}
        self._unprepares: Counter[str] = Counter()

    @contextmanager
    def attempt(self, owner: Owner, devices: PreparedDevices) -> Iterator[None]:
        """Around a try to prepare the `devices` of `owner`: counts a failure where the error names
        a device (`attribute_to`). `on_prepared` says that it succeeded."""
        try:
            yield
        except GcuError as error:
            if error.device is not None:
                self._failed(owner, devices, error.device, error)
            raise

    def on_prepared(self, owner: Owner, created: Iterable[str] = ()) -> None:
        """The owner is prepared; something was created on the devices with the names `created`."""
        with self._lock:
            self._unprepares.pop(owner.uid, None)
            waited = self._waiting.pop(owner.uid, None)
            for device in {*created} if waited is None else {*created, waited.device}:
                self._tripped_until.pop(device, None)

    def count_failed_unprepare(self, owner: Owner) -> bool:
        """Count an unprepare that its cards failed; returns whether that was the last try: then the
        pod has waited long enough."""
        with self._lock:
            self._unprepares[owner.uid] += 1
            return self._unprepares[owner.uid] >= TRIES

    def on_orphaned(self, owner: Owner, device: PreparedDevice, error: GcuError) -> None:
        """The owner is unprepared but for this device, which is an orphan now. The journal says so
        for as long as it lasts, so nothing is counted here."""
        self._on_tripped(
            device.device_name,
            f"{owner.title} has ended, and its device on card {device.card} could not be destroyed "
            f"({error}); the agent tries it again and again, and nobody gets the card until then",
        )

    def on_unprepared(self, owner: Owner, returned: PreparedDevices) -> None:
        """The owner needs nothing any more; `returned` are the devices that it had."""
        with self._lock:
            self._unprepares.pop(owner.uid, None)
            if self._waiting.pop(owner.uid, None) is None:
                for device in returned:
                    if device.device_name in self._tripped_until:
                        self._tripped_until[device.device_name] = self._clock()

    def tripped(self) -> frozenset[str]:
        """The names of the devices that should take no new claim now."""
        now = self._clock()
        with self._lock:
            return frozenset(name for name, until in self._tripped_until.items() if now < until)

    def waiting(self) -> Mapping[str, Waiting]:
        """By UID, the owners whose prepare has failed so often that people should know."""
        with self._lock:
            return {
                uid: each
                for uid, each in self._waiting.items()
                if each.tries >= TRIES or each.device in self._tripped_until
            }

    def _failed(self, owner: Owner, devices: PreparedDevices, device: str, error: GcuError) -> None:
        with self._lock:
            now = self._clock()
            self._waiting = {
                uid: each for uid, each in self._waiting.items() if now - each.at < _FORGET_AFTER
            }
            before = self._waiting.get(owner.uid)
            tries = before.tries + 1 if before is not None else 1
            self._waiting[owner.uid] = Waiting(owner, devices, device, str(error), tries, now)
            until = self._tripped_until.get(device)
            trips = tries >= TRIES if until is None else now >= until
            if trips:
                self._tripped_until[device] = now + _OPEN_FOR
        if trips:
            self._on_tripped(device, str(error))
