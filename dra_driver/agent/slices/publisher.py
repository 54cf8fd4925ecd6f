"""Keeps the node's ResourceSlices equal to its hardware."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from pathlib import Path

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.slices.slice_diff import SliceDiff, diff_slices
from dra_driver.agent.slices.slice_writer import SliceWriter
from dra_driver.agent.slices.slices import SliceForm, devices_of, own_slices
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Conflict
from dra_driver.kube.preflight import check_server, check_visible
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.logfile import is_at
from dra_driver.node.locks import take_lock
from dra_driver.telemetry.logs import new_call
from dra_driver.telemetry.program import Deadline
from dra_driver.util.background import Wait, Woken
from dra_driver.util.backoff import Backoff
from dra_driver.util.files import lock_errors, open_lock

logger = logging.getLogger(__name__)

# Seconds. Nothing wakes the publisher when the device of a lost card can go, after a claim's end,
# nor when the allocator changes. To compare takes half a millisecond, and no request.
_COMPARE_EVERY = 10.0
_TRY_LOCK_EVERY = 1.0  # seconds, while another agent publishes


DesiredSource = Callable[[Devices], Devices | None]
"""The devices to publish where the server has those; None while they are unknown. Raises
JournalError, and KubeError."""


OnPublication = Callable[[str], None]
"""Called after an attempt that was ``written``, met a ``conflict`` or ``failed``."""


class PublishLock:
    """An flock(2) on the file at `path`, held until `release` or the end of the process. While two
    agents run side by side, the first one publishes, and the other one takes over when it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def try_acquire(self) -> bool:
        """Whether this agent has the lock now; does not wait. Raises JournalError if the file
        cannot be used."""
        with lock_errors(self._path):
            try:
                if self._fd >= 0 and is_at(self._fd, self._path):
                    return True
                # The file was removed, so the next agent would lock another one.
                self.release()
                self._fd = open_lock(self._path)
                take_lock(self._fd, None, wait=False)
            except BlockingIOError:
                self.release()
            except OSError:
                self.release()
                raise
        return self._fd >= 0

    def release(self) -> None:
        """Let another agent take it; does nothing if this one does not have it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass(eq=False)
class SlicePublisher(Woken):
    """Publishes `devices`, again whenever they or the slices on the server have changed.

    While `devices` returns None nothing is published: an empty pool would mean that the node has no
    cards.

    The present slices are known from one watch, so a comparison costs no request. After a failure,
    and after writing the same devices twice, it backs off, so that the server sees few writes if
    another program keeps changing the slices. Of two agents that run side by side one publishes
    (`publish_lock`). The other one is ready too, because an update waits for its readiness.

    Without a `publish_lock` there is no other agent. The publisher fills `published`.
    """

    api: Api
    node_name: str
    _: KW_ONLY
    devices: DesiredSource
    form: SliceForm = SliceForm.VISIBLE
    publish_lock: PublishLock | None = None
    published: SliceCache = field(default_factory=SliceCache)
    on_publication: OnPublication = lambda _outcome: None
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    wait: InitVar[Wait | None] = None

    def __post_init__(self, wait: Wait | None) -> None:
        super().__init__("publisher", wait=wait)
        self._stands_by = False
        self.published.on_change.subscribe(self.wake)
        self._writer = SliceWriter(self.api, self.published)
        selector = own_slices(self.node_name, self.form)
        self._watch = Reflector(self.api, RESOURCE_SLICES, self.published, field_selector=selector)
        self._server_checked = False
        self._node: Object | None = None
        self._written: Devices | None = None
        self._published_once = False
        self._failure: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the slices may differ from the cards; None if they are equal."""
        if self._failure or self._watch.problem:
            return self._failure or self._watch.problem
        if not self._published_once and not self._stands_by:
            return "the cards have not been published yet"
        if self.published.slices is None:
            return "the slices of this node have not been listed yet"
        return None

    def start(self) -> None:
        """Watch the slices and publish, each in its own thread."""
        self.wake()
        self._watch.start()
        super().start()

    def stop(self, timeout: float) -> None:
        """End the threads within `timeout` seconds; the slices stay, as the node's cards do."""
        deadline = Deadline(timeout)
        super().stop(deadline.left())
        self._watch.stop(deadline.left())
        if self.publish_lock is not None and not self.is_alive():
            self.publish_lock.release()

    def ended(self) -> str | None:
        return super().ended() or self._watch.ended()

    def run(self) -> None:
        while True:
            self._woken.wait(_TRY_LOCK_EVERY if self._stands_by else _COMPARE_EVERY)
            self._woken.clear()
            if self._stopped.is_set():
                return
            with new_call("publish"):
                done = self._attempt()
            if done:
                self.backoff.reset()
                continue
            if self._wait(self.backoff.next()):
                return
            self.wake()

    def publish(self) -> SliceDiff | None:
        """Compare once, and write the difference; None while hardware or slices are unknown.

        Raises KubeError, PublicationError if the server dropped a part, Refused for a server that
        is too old, and what `devices` raises.
        """
        self._check_server()
        if self.published.slices is not None and self.published.unwatched is None:
            other = SliceForm.VISIBLE if self.form is SliceForm.HIDDEN else SliceForm.HIDDEN
            selector = own_slices(self.node_name, other)
            self.published.unwatched = self.api.list(RESOURCE_SLICES, field_selector=selector).items
        current = self.published.slices
        wanted = None if current is None else self.devices(devices_of(current))
        if current is None or wanted is None:
            return None
        if self._node is None or diff_slices(self._node, wanted, current, self.form):
            # Read again before each write: slices are deleted with their Node, and a new Node
            # of that name has another UID.
            self._node = self.api.get(NODES, self.node_name)
        changes = diff_slices(self._node, wanted, current, self.form)
        self._writer.apply(changes)
        self.published.unwatched = ()
        return changes

    def _check_server(self) -> None:
        if self._server_checked:
            return
        version = self.api.server_version()
        check_server(version)
        if self.form is SliceForm.VISIBLE:
            check_visible(version)
        self._server_checked = True

    def _attempt(self) -> bool:
        """Whether no back-off is needed: nothing was written, or devices that had changed."""
        try:
            changes = self.publish() if self._acquire_publish_lock() else None
        except Conflict as error:
            logger.info("the slices changed meanwhile, comparing again: %s", error)
            self.on_publication("conflict")
            return False
        except GcuError as error:
            if self._failure != str(error):
                logger.warning("cannot publish: %s", error)
            self._failure = str(error)
            self.on_publication("failed")
            return False
        self._failure = None
        if changes is None:
            return True
        self._published_once = True
        if not changes:
            return True
        self.on_publication("written")
        _log(changes)
        devices = devices_of(changes.desired)
        again, self._written = self._written == devices, devices
        return not again

    def _acquire_publish_lock(self) -> bool:
        acquired = self.publish_lock is None or self.publish_lock.try_acquire()
        if not acquired:
            self.published.unwatched = None  # the other agent may write slices of that form
        if acquired == self._stands_by:
            logger.info(
                "publishing from now on"
                if acquired
                else "another agent publishes; this one stands by"
            )
        self._stands_by = not acquired
        return acquired


def _log(changes: SliceDiff) -> None:
    logger.info(
        "published %d devices in %d slices (generation %d): %d deleted, %d updated, %d created",
        sum(len(s["spec"].get("devices", ())) for s in changes.desired),
        len(changes.desired),
        changes.desired[0]["spec"]["pool"]["generation"],
        len(changes.delete),
        len(changes.update),
        len(changes.create),
    )
