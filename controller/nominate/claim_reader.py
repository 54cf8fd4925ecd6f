"""What a pod asks for, once all is known that decides where it is placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from controller.cache import pods
from controller.cache.keys import Key
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.reconcile.context import Context
from controller.write.commands import Answer, ReadVolumes
from controller.write.volumes import VolumeCache
from dra_driver.model.claims.claim import Object

_OTHERS_WITHIN: Final = 5.0  # seconds in which slices of other drivers are listed
_OTHERS_AGAIN: Final = 0.2


class ClaimReader:
    """One instance, one thread. `follow_others` is called while a pod asks for devices of other
    drivers, and their slices are not listed."""

    def __init__(
        self, context: Context, placer: Placer, follow_others: Callable[[], object]
    ) -> None:
        self._context = context
        self._placer = placer
        self._follow_others = follow_others
        self._others_until: float | None = None  # pods wait until then for others' slices
        self._volumes = VolumeCache(context.clock)

    def read(self, pod: Object, claims: Mapping[str, Object]) -> PodClaims:
        """As `Placer.read`."""
        asked = self._placer.read(pod, claims)
        if asked.await_others:
            self._follow_others()
        return asked

    def awaits_others(self, asked: PodClaims) -> bool:
        """Whether the pod waits for the list of other drivers' slices, which is made when the first
        pod asks for their devices. If it does not come, ours alone decide."""
        if not asked.await_others:
            return False
        now = self._context.clock()
        if self._others_until is None:
            self._others_until = now + _OTHERS_WITHIN
        if now >= self._others_until or not pods.has_our_gate(asked.pod):
            return False
        self._context.queue.add(pods.key_of(asked.pod), now + _OTHERS_AGAIN)
        return True

    def with_volumes(self, asked: PodClaims) -> PodClaims | None:
        """With where the pod's volumes are. None while they are read."""
        pod = asked.pod
        volumes = self._volumes.get(pod)
        if volumes is None:
            self._context.dispatcher.dispatch(ReadVolumes(key=pods.key_of(pod), pod=pod))
            return None
        return replace(asked, volumes=volumes.selectors)

    def on_volumes(self, command: ReadVolumes, answer: Answer) -> None:
        """The pod's volumes were read."""
        if answer.error is None:
            self._volumes.put(command.pod, answer.volumes)

    def forget(self, key: Key) -> None:
        """The pod waits no longer."""
        self._volumes.forget(key)
