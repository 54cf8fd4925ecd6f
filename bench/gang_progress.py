"""When the pods of a gang are named, lose their gates, and are bound."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.fleet import Object
from bench.programs import SECONDS
from bench.users import NAMESPACE
from controller.cache.pods import nominated_node
from dra_driver.kube.api import Change
from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector


class GangProgress:
    """A watch of all pods. `named`, `lifted` and `bound` have by the pod's name when it was first
    seen so, as `clock` says; a name counts where it comes before the gate is gone. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.named: Final = dict[str, float]()
        self.lifted: Final = dict[str, float]()
        self.bound: Final = dict[str, float]()
        self._clock = clock
        self._more = threading.Condition()

    @contextmanager
    def following(self, api: Client) -> Iterator[None]:
        """Raises TimeoutError."""
        reflector = Reflector(api, PODS, self, namespace=NAMESPACE)
        reflector.start()
        try:
            if not reflector.synced.wait(SECONDS):
                raise TimeoutError(f"pods could not be listed in {SECONDS:g} s")
            yield
        finally:
            reflector.stop(10.0)

    def wait_for_bound(self, count: int, seconds: float = SECONDS) -> float:
        """When the last one was bound, once so many are. Raises TimeoutError."""
        with self._more:
            if not self._more.wait_for(lambda: len(self.bound) >= count, seconds):
                raise TimeoutError(f"{len(self.bound)} of {count} were bound in {seconds:g} s")
        return max(self.bound.values())

    def on_replace(self, items: Sequence[Object]) -> None:
        for item in items:
            self.on_event(Change.ADDED, item)

    def on_event(self, _change: Change, obj: Object) -> None:
        name, spec, now = obj["metadata"]["name"], obj["spec"], self._clock()
        if not spec.get("schedulingGates"):
            self.lifted.setdefault(name, now)
        elif nominated_node(obj):
            self.named.setdefault(name, now)
        if spec.get("nodeName"):
            with self._more:
                self.bound.setdefault(name, now)
                self._more.notify()
