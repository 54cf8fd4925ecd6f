"""Keeps the node's ResourceSlices on the API server as the hardware is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from dra_driver.agent.changes import Changes, keep_held, plan_changes
from dra_driver.agent.slices import Object, dropped_fields
from dra_driver.kube.api import Api
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.errors import Conflict, NotFound
from dra_driver.kube.preflight import check_server
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER
from dra_driver.model.pci import PciAddress
from dra_driver.telemetry.logs import new_call

logger = logging.getLogger(__name__)

# Which feature gate a server lacks that drops a field of ours (KEP-5055, KEP-5075).
_FEATURES = {
    "taints": "DRADeviceTaints",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "requestPolicy": "DRAConsumableCapacity",
}


class PublicationError(GcuError):
    """The server did not keep what was published; nothing of it stays there."""


def own_slices(node: str) -> str:
    """The field selector of this driver's slices of `node`."""
    return f"spec.nodeName={node},spec.driver={DRIVER}"


class Publisher:
    """Publishes what `devices` gives, again whenever it is woken, until the server has it.

    `devices` gives None while the hardware has not been read yet: then nothing is published,
    since an empty pool would say that the node has no cards. `held` are the cards that claims
    hold on this node.
    """

    def __init__(
        self,
        api: Api,
        node_name: str,
        *,
        devices: Callable[[], Sequence[Object] | None],
        held: Callable[[], frozenset[PciAddress]],
        backoff: Backoff | None = None,
    ) -> None:
        self._api = api
        self._node_name = node_name
        self._devices = devices
        self._held = held
        self._backoff = backoff or Backoff(first=1.0, longest=60.0)
        self._server_checked = False
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._desired: dict[str, Object] = {}
        self.problem: str | None = "the node's cards have not been published yet"

    def start(self) -> None:
        """Publish in a thread of its own, now and whenever woken."""
        self._wake.set()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the slices stay, as the node's cards do."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def wake(self) -> None:
        """Compare with the server once more."""
        self._wake.set()

    def slice_changed(self, name: str, spec: Object | None) -> None:
        """A slice of ours is now `spec` on the server (None: deleted). Wakes unless we wrote it."""
        wanted = self._desired.get(name)
        if wanted is None or spec is None or dropped_fields(wanted["spec"], spec):
            self.wake()

    def publish(self) -> Changes | None:
        """One comparison, and the writes it takes; None while the hardware is unknown.

        Raises KubeError, PublicationError where the server dropped a part, Refused for a server
        that is too old, and JournalError when it is unknown which cards are held.
        """
        if not self._server_checked:
            check_server(self._api.server_version())
            self._server_checked = True
        devices = self._devices()
        if devices is None:
            return None
        node = self._api.get(NODES, self._node_name)
        selector = own_slices(self._node_name)
        current = self._api.list(RESOURCE_SLICES, field_selector=selector).items
        changes = plan_changes(node, keep_held(devices, current, self._held()), current)
        self._desired = {s["metadata"]["name"]: s for s in changes.desired}
        for obsolete in changes.delete:
            self._delete(obsolete)
        for updated in changes.update:
            self._check(updated, self._api.replace(RESOURCE_SLICES, updated))
        for created in changes.create:
            # A dry run first: a slice whose taint the server drops is free for all until it
            # is deleted again.
            self._check(created, self._api.create(RESOURCE_SLICES, created, dry_run=True))
            self._check(created, self._api.create(RESOURCE_SLICES, created))
        return changes

    def _check(self, sent: Object, kept: Object) -> None:
        dropped = dropped_fields(sent["spec"], kept["spec"], "spec")
        if not dropped:
            return
        features = sorted({f for field, f in _FEATURES.items() if any(field in d for d in dropped)})
        self._delete(sent)
        raise PublicationError(
            f"the API server drops {', '.join(dropped[:3])} from ResourceSlices",
            remedy=f"switch on the feature gate {' and '.join(features)} on the API server"
            if features
            else "use Kubernetes 1.36 or newer",
        )

    def _delete(self, published: Object) -> None:
        try:
            self._api.delete(RESOURCE_SLICES, published["metadata"]["name"])
        except NotFound:
            logger.debug("slice %s was gone already", published["metadata"]["name"])

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            if self._stop.is_set():
                return
            with new_call("publish"):
                if self._attempt():
                    self._backoff.reset()
                    continue
            self._stop.wait(self._backoff.next())
            self._wake.set()

    def _attempt(self) -> bool:
        try:
            changes = self.publish()
        except Conflict as error:
            logger.info("the slices changed meanwhile, comparing again: %s", error)
            return False
        except GcuError as error:
            logger.warning("cannot publish: %s", error)
            self.problem = str(error)
            return False
        if changes is None:
            return True
        self.problem = None
        if changes:
            devices = sum(len(s["spec"].get("devices", ())) for s in changes.desired)
            logger.info(
                "published %d devices in %d slices (generation %d): %d deleted, %d updated, "
                "%d created",
                devices,
                len(changes.desired),
                changes.desired[0]["spec"]["pool"]["generation"],
                len(changes.delete),
                len(changes.update),
                len(changes.create),
            )
        return True
