"""Devices on which nothing can be made for a claim (or a container that the device plugin served),
try after try: who waits for them, and for how long nothing new should come to them.

A claim is bound to its node and device before the agent hears of it, and the kubelet asks again
and again: only another pod, on another card, ends that. docs/adr/0011 weighs the ways to it. What
such a claim had is asked back again and again, too, and its pod waits meanwhile: docs/adr/0020.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dra_driver.model.errors import ForeignCard, GcuError, HardwareError, InvalidValue
from dra_driver.model.owner import Owner
from dra_driver.node.checkpoint.records import PreparedDevice

TRIES: Final = 3
"""How often in a row it may fail for a claim, to give it something or to take it back. The kubelet
asks again after 60 to 90 s, as it takes a failed prepare for no error of its own; after 10 to 15 s
for a failed unprepare (1.36, ``kuberuntime_manager.go`` and ``pod_workers.go``)."""

_PAUSE: Final = 600.0  # seconds for which a device is closed
_FORGET_AFTER: Final = 3600.0  # for an owner that nobody asked for or unprepared

Holds = tuple[PreparedDevice, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """An owner that was not given its devices: what it should hold, the device on which nothing
    could be made for it, why not, and how often in a row. `at` is when that was last tried."""

    owner: Owner
    holds: Holds
    device: str
    reason: str
    tries: int
    at: float


@dataclass(frozen=True, slots=True)
class _Tries:
    """How often in a row it failed, and when last."""

    count: int
    at: float


@contextmanager
def attribute_to(device: str | None) -> Iterator[None]:
    """Around a step on the card of `device`, None for a device that the owner has not: an error of
    which the card, or what is asked of it, is the cause says so from here on.

    That another owner holds the card, or a record cannot be written, says nothing of the card.
    """
    try:
        yield
    except (HardwareError, InvalidValue, ForeignCard) as error:
        error.device = error.device or device
        raise


class DeviceCircuitBreaker:
    """Counts the tries; thread-safe.

    A device is closed after `TRIES` failures for one owner, for ten minutes, and again when the
    first try after that fails. It is open at once when something could be made, or when another
    owner has given back what it had of it: there may be room now. `closed` is called with the
    device and the reason each time that a device closes.
    """

    def __init__(
        self,
        *,
        closed: Callable[[str, str], None] = lambda _device, _reason: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds."""
        self._tell = closed
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self._closed_until: dict[str, float] = {}
        self._ending: dict[str, _Tries] = {}

    @contextmanager
    def attempt(self, owner: Owner, holds: Holds) -> Iterator[None]:
        """Around a try to give `owner` its `holds`: it has failed where a device is
        to `attribute_to`, whichever step it was. How it ends well says `succeeded`."""
        try:
            yield
        except GcuError as error:
            if error.device is not None:
                self._failed(owner, holds, error.device, error)
            raise

    def succeeded(self, owner: Owner, made: Iterable[str] = ()) -> None:
        """The owner has all that it should; of the devices in `made` something was made for it."""
        with self._lock:
            self._ending.pop(owner.uid, None)
            waited = self._waiting.pop(owner.uid, None)
            for device in {*made} if waited is None else {*made, waited.device}:
                self._closed_until.pop(device, None)

    def unprepare_failed(self, owner: Owner) -> bool:
        """Count a try to take back what the owner has, which its cards failed. Whether it was the
        last: its pod has waited long enough then, and what is left must be told of (`left`)."""
        with self._lock:
            now = self._clock()
            self._ending = {
                uid: each for uid, each in self._ending.items() if now - each.at < _FORGET_AFTER
            }
            before = self._ending.get(owner.uid)
            tries = before.count + 1 if before is not None else 1
            self._ending[owner.uid] = _Tries(tries, now)
        return tries >= TRIES

    def orphaned(self, owner: Owner, hold: PreparedDevice, error: GcuError) -> None:
        """Tell that the owner is unprepared but for this hold; nothing is counted of it, as the
        journal says so for as long as it lasts."""
        self._tell(
            hold.device,
            f"{owner.title} has ended, and what it had on card {hold.card} could not be taken away "
            f"({error}); until that is done, which is tried again and again, nobody gets anything "
            "of the card",
        )

    def unprepared(self, owner: Owner, given_back: Holds) -> None:
        """The owner waits no longer; `given_back` is what it had."""
        with self._lock:
            self._ending.pop(owner.uid, None)
            if self._waiting.pop(owner.uid, None) is None:
                for hold in given_back:
                    if hold.device in self._closed_until:
                        self._closed_until[hold.device] = self._clock()

    def tripped(self) -> frozenset[str]:
        """The devices that should take nothing new now."""
        now = self._clock()
        with self._lock:
            return frozenset(name for name, until in self._closed_until.items() if now < until)

    def waiting(self) -> Mapping[str, Waiting]:
        """By UID, the owners for which it has failed often enough to be told."""
        with self._lock:
            return {
                uid: each
                for uid, each in self._waiting.items()
                if each.tries >= TRIES or each.device in self._closed_until
            }

    def _failed(self, owner: Owner, holds: Holds, device: str, error: GcuError) -> None:
        with self._lock:
            now = self._clock()
            self._waiting = {
                uid: each for uid, each in self._waiting.items() if now - each.at < _FORGET_AFTER
            }
            before = self._waiting.get(owner.uid)
            tries = before.tries + 1 if before is not None else 1
            self._waiting[owner.uid] = Waiting(owner, holds, device, str(error), tries, now)
            until = self._closed_until.get(device)
            closes = tries >= TRIES if until is None else now >= until
            if closes:
                self._closed_until[device] = now + _PAUSE
        if closes:
            self._tell(device, str(error))
