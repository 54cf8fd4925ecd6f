"""Writes ResourceSlices, and checks that the server stored them completely."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.slices.slice_diff import SliceDiff
from dra_driver.agent.slices.slices import dropped_fields
from dra_driver.kube.api import Api
from dra_driver.kube.errors import AlreadyExists, Conflict, NotFound
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError

# The feature gate that a server needs to store the field (KEP-4815, KEP-5055, KEP-5075).
_FEATURES: Final = {
    "taints": "DRADeviceTaints",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "requestPolicy": "DRAConsumableCapacity",
    "sharedCounters": "DRAPartitionableDevices",
    "consumesCounters": "DRAPartitionableDevices",
}


class PublicationError(GcuError):
    """The server does not store the devices completely; no incomplete slice stays there."""


class SliceWriter:
    """Makes the writes of a diff, and puts each answer into `published` at once.

    Raises KubeError (Conflict if a slice differs from `published`), and PublicationError if the
    server dropped a part of a slice.
    """

    def __init__(self, api: Api, published: SliceCache) -> None:
        self._api = api
        self._published = published

    def apply(self, changes: SliceDiff) -> None:
        for obsolete in changes.delete:
            self._delete(obsolete)
        for updated in changes.update:
            self._replace(updated)
        for created in changes.create:
            self._create(created)
        for superseded in changes.superseded:
            self._delete(superseded)

    def _replace(self, wanted: Object) -> None:
        try:
            stored = self._api.replace(RESOURCE_SLICES, wanted)
        except NotFound as error:
            # The watch would deliver this later; so the next attempt can create the slice.
            self._published.on_removed(wanted)
            raise Conflict(error.what, status=error.status, reason=error.reason) from error
        self._delete_unless_complete(wanted, stored)

    def _create(self, wanted: Object) -> None:
        try:
            # A dry run first: kube-scheduler could allocate a slice without its taint until
            # it is deleted again.
            _check(wanted, self._api.create(RESOURCE_SLICES, wanted, dry_run=True))
            stored = self._api.create(RESOURCE_SLICES, wanted)
        except AlreadyExists as error:
            raise PublicationError(
                f"ResourceSlice {wanted['metadata']['name']} exists, but is not one of this driver "
                "and node",
                remedy="if this persists, stop the program that created it, and delete it",
            ) from error
        self._delete_unless_complete(wanted, stored)

    def _delete_unless_complete(self, wanted: Object, stored: Object) -> None:
        self._published.on_written(stored)
        try:
            _check(wanted, stored)
        except PublicationError:
            self._delete(stored)
            raise

    def _delete(self, obsolete: Object) -> None:
        with suppress(NotFound):  # deleted already
            metadata = obsolete["metadata"]
            self._api.delete(RESOURCE_SLICES, metadata["name"], uid=metadata["uid"])
        self._published.on_removed(obsolete)


def _check(sent: Object, stored: Object) -> None:
    dropped = dropped_fields(sent["spec"], stored["spec"], "spec")
    if not dropped:
        return
    features = sorted({f for field, f in _FEATURES.items() if any(field in d for d in dropped)})
    raise PublicationError(
        f"the API server drops {', '.join(dropped[:3])} from ResourceSlices",
        remedy=f"enable the feature gate {' and '.join(features)} on the API server"
        if features
        else "use Kubernetes 1.36 or newer",
    )
