"""Where a pod's volumes already are: a bound volume ties its pods to a zone or a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from controller.cache import pods
from controller.cache.keys import Key
from controller.queue.scheduling_queue import SchedulingQueue
from controller.write.commands import Answer, ReadVolumes
from controller.write.dispatcher import WriteDispatcher
from controller.write.volume_reader import claim_names
from dra_driver.model.claim import Object

LIFE: Final = 10.0  # seconds


class Volumes:
    """Node selectors of the volumes of waiting pods. They are not watched: few pods with GCUs have
    volumes that tie them to a place. They are read in another thread when their pod is about to be
    served.

    What was read serves at least one decision, however many pods are decided on before, and all
    others within `LIFE` of the read: a volume that is bound stays where it is.
    """

    def __init__(
        self, dispatcher: WriteDispatcher, queue: SchedulingQueue, clock: Callable[[], float]
    ) -> None:
        self._dispatcher = dispatcher
        self._queue = queue
        self._clock = clock
        self._known: dict[Key, _Known] = {}

    def selectors(self, key: Key, pod: Object) -> Sequence[Object] | None:
        """As `volume_reader.node_selectors` read them; None if the pod comes up again when they
        are read."""
        if not any(claim_names(pod)):
            return ()
        known = self._known.get(key)
        if known is not None and known.serves(pods.uid_of(pod), self._clock()):
            known.used = True
            return known.selectors
        self._dispatcher.dispatch(ReadVolumes(key, pod))
        return None

    def forget(self, key: Key) -> None:
        """The pod waits no longer."""
        self._known.pop(key, None)

    def on_read(self, command: ReadVolumes, answer: Answer) -> None:
        """Raises what ended the read."""
        if answer.error is not None:
            raise answer.error
        key, now = command.key, self._clock()
        self._known[key] = _Known(pods.uid_of(command.pod), now + LIFE, answer.objects)
        self._queue.add(key, now)  # if the pod is gone, this forgets what was read


@dataclass(slots=True)
class _Known:
    uid: str
    until: float
    selectors: Sequence[Object]
    used: bool = False

    def serves(self, uid: str, now: float) -> bool:
        return self.uid == uid and (not self.used or now < self.until)
