"""What the deciding thread asks of the part that reconciles."""

from __future__ import annotations

from typing import Protocol

from controller.cache.cache import Changed
from controller.cache.keys import Key
from controller.write.commands import WriteDone


class KeyReconciler(Protocol):
    """Does one step at a time, for one pod, claim or claim template. After a KubeError the key is
    reconciled again later. One instance, one thread."""

    def reconcile(self, key: Key) -> None:
        """Read what the key names, and do the next thing that is to be done for it."""

    def on_change(self, changed: Changed, now: float) -> None:
        """The cache has the change of one object. Called on followers, too."""

    def on_answer(self, done: WriteDone) -> None:
        """A command has ended, and the cache has what the server answered. Raises the command's
        error."""

    def remove_waiting(self, key: Key) -> None:
        """The pod waits for devices no longer: no node is reserved for it."""

    def clear(self) -> None:
        """Another replica leads."""
