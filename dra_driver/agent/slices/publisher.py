"""Keeps the node's ResourceSlices on the API server as the hardware is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from dra_driver.agent.slices.device_layout import Devices, with_held_forms
from dra_driver.agent.slices.publish_lock import PublishLock
from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.slices.slice_diff import SliceDiff, diff_slices
from dra_driver.agent.slices.slice_writer import SliceWriter
from dra_driver.agent.slices.slices import Object
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Conflict
from dra_driver.kube.preflight import check_server
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.kube.watch import Reflector
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.telemetry.logs import new_call
from dra_driver.telemetry.program import Deadline
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)

# What wakes nobody: a claim's end, after which the device of a lost card need no longer stay.
_COMPARE_EVERY = 60.0
_ASK_EVERY = 1.0  # seconds between two looks whether another agent still publishes


def own_slices(node: str) -> str:
    """The field selector of this driver's slices of `node`."""
    return f"spec.nodeName={node},spec.driver={DRIVER}"


class Publisher(Background):
    """Publishes what `devices` gives, again whenever it or the server's state has changed.

    `devices` gives the devices of each card that is there, None while the hardware has not been
    read yet: then nothing is published, since an empty pool would say that the node has no cards.
    `held` are the cards that claims hold on this node, `evict` the values of taints that make
    pods leave.

    What stands on the server is known from one watch, so that comparing costs no request. After
    every failure, and after writing the same once more, it waits, longer each time until all is
    as it should be: where somebody else writes the same slices all the time, the server sees few
    writes of ours. Two agents that run side by side take turns (`publish_lock`); the one
    that waits is as ready as the one that publishes, since an update waits for it.
    """

    def __init__(
        self,
        api: Api,
        node_name: str,
        *,
        devices: Callable[[], Mapping[PciAddress, Devices] | None],
        held: Callable[[], frozenset[PciAddress]],
        evict: Collection[str] = (),
        publish_lock: PublishLock | None = None,
        counted: Callable[[str], None] = lambda _: None,
        backoff: Backoff | None = None,
        wait: Wait | None = None,
    ) -> None:
        """`wait(seconds)` sleeps, and returns True when the publisher was stopped; without a
        `publish_lock` there is nobody else. `counted` is told of each attempt that was written,
        met a conflict or failed, in that one word."""
        super().__init__("publisher", wait=wait, interrupt=self.wake)
        self._api = api
        self._node_name = node_name
        self._devices = devices
        self._held = held
        self._evict = evict
        self._publish_lock = publish_lock
        self._counted = counted
        self._stands_by = False
        self._backoff = backoff or Backoff(first=1.0, longest=60.0)
        self._wake = threading.Event()
        self.published = SliceCache(self.wake)
        self._writer = SliceWriter(api, self.published)
        self._reflector = Reflector(
            api, RESOURCE_SLICES, self.published, field_selector=own_slices(node_name)
        )
        self._server_checked = False
        self._node: Object | None = None
        self._written: Devices | None = None
        self._published_once = False
        self._failure: str | None = None

    @property
    def devices(self) -> Devices:
        """The node's devices as they stand on the API server; none until it has told."""
        return _devices_of(self.published.slices or ())

    @property
    def problem(self) -> str | None:
        """Why the slices may not be as the cards are, or None."""
        if not self._published_once and not self._stands_by:
            unpublished: str | None = "the cards have not been published yet"
        elif self.published.slices is None:
            unpublished = "the slices of this node have not been listed yet"
        else:
            unpublished = None
        return self._failure or self._reflector.problem or unpublished

    def start(self) -> None:
        """Follow the slices and publish, each in a thread of its own."""
        self._wake.set()
        self._reflector.start()
        super().start()

    def stop(self, timeout: float) -> None:
        """End the threads within `timeout` seconds; the slices stay, as the node's cards do."""
        deadline = Deadline(timeout)
        super().stop(deadline.left())
        self._reflector.stop(deadline.left())
        if self._publish_lock is not None and not super().is_alive():
            self._publish_lock.release()

    def is_alive(self) -> bool:
        return super().is_alive() and self._reflector.is_alive()

    def wake(self) -> None:
        """Compare once more."""
        self._wake.set()

    def run(self) -> None:
        """The thread's work; returns after `stop`."""
        while True:
            self._wake.wait(_ASK_EVERY if self._stands_by else _COMPARE_EVERY)
            self._wake.clear()
            if self._stopped.is_set():
                return
            with new_call("publish"):
                well = self._attempt()
            if well:
                self._backoff.reset()
                continue
            if self._wait(self._backoff.next()):
                return
            self._wake.set()

    def publish(self) -> SliceDiff | None:
        """One comparison, and the writes it takes; None while hardware or server are unknown.

        Raises KubeError, PublicationError where the server dropped a part, Refused for a server
        that is too old, and JournalError when it is unknown which cards are held.
        """
        if not self._server_checked:
            check_server(self._api.server_version())
            self._server_checked = True
        devices, current = self._devices(), self.published.slices
        if devices is None or current is None:
            return None
        wanted = with_held_forms(devices, _devices_of(current), self._held(), evict=self._evict)
        if self._node is None or diff_slices(self._node, wanted, current):
            # Read again before each write: slices go with their Node, and another Node of that
            # name has another UID.
            self._node = self._api.get(NODES, self._node_name)
        changes = diff_slices(self._node, wanted, current)
        self._writer.apply(changes)
        return changes

    def _attempt(self) -> bool:
        """Whether all is well: nothing was to be written, or only what is news of ours."""
        try:
            changes = self.publish() if self._acquire_publish_lock() else None
        except Conflict as error:
            logger.info("the slices changed meanwhile, comparing again: %s", error)
            self._counted("conflict")
            return False
        except GcuError as error:
            if self._failure != str(error):
                logger.warning("cannot publish: %s", error)
            self._failure = str(error)
            self._counted("failed")
            return False
        self._failure = None
        if changes is None:
            return True
        self._published_once = True
        if not changes:
            return True
        self._counted("written")
        _tell(changes)
        devices = _devices_of(changes.desired)
        again, self._written = self._written == devices, devices
        return not again

    def _acquire_publish_lock(self) -> bool:
        ours = self._publish_lock is None or self._publish_lock.try_acquire()
        if ours == self._stands_by:
            logger.info(
                "publishing from now on" if ours else "another agent publishes; this one stands by"
            )
        self._stands_by = not ours
        return ours


def _tell(changes: SliceDiff) -> None:
    logger.info(
        "published %d devices in %d slices (generation %d): %d deleted, %d updated, %d created",
        sum(len(s["spec"].get("devices", ())) for s in changes.desired),
        len(changes.desired),
        changes.desired[0]["spec"]["pool"]["generation"],
        len(changes.delete),
        len(changes.update),
        len(changes.create),
    )


def _devices_of(slices: Iterable[Object]) -> Devices:
    return [device for each in slices for device in each["spec"].get("devices", ())]
