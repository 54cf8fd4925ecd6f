"""Writes ResourceSlices, and makes sure that the server kept what it was given."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.slices.slice_diff import SliceDiff
from dra_driver.agent.slices.slices import Object, dropped_fields
from dra_driver.kube.api import Api
from dra_driver.kube.errors import AlreadyExists, Conflict, NotFound
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.errors import GcuError

# Which feature gate a server lacks that drops a field of ours (KEP-5055, KEP-5075).
_FEATURES: Final = {
    "taints": "DRADeviceTaints",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "requestPolicy": "DRAConsumableCapacity",
}


class PublicationError(GcuError):
    """The server cannot have what is to be published; nothing that it cut stays there."""


class SliceWriter:
    """Carries out changes, and tells `published` of each as soon as it is done.

    Raises KubeError (Conflict where a slice is no longer what `published` said), and
    PublicationError where the server dropped a part of a slice.
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

    def _replace(self, wanted: Object) -> None:
        try:
            kept = self._api.replace(RESOURCE_SLICES, wanted)
        except NotFound as error:
            # The watch will tell the same; known at once, it is created by the next attempt.
            self._published.on_removed(wanted)
            raise Conflict(error.what, status=error.status, reason=error.reason) from error
        self._keep_if_whole(wanted, kept)

    def _create(self, wanted: Object) -> None:
        try:
            # A dry run first: a slice whose taint the server drops is free for all until it
            # is deleted again.
            _check(wanted, self._api.create(RESOURCE_SLICES, wanted, dry_run=True))
            kept = self._api.create(RESOURCE_SLICES, wanted)
        except AlreadyExists as error:
            raise PublicationError(
                f"ResourceSlice {wanted['metadata']['name']} exists, but is not one of this driver "
                "and node",
                remedy="if this persists, stop the program that created it, and delete it",
            ) from error
        self._keep_if_whole(wanted, kept)

    def _keep_if_whole(self, wanted: Object, kept: Object) -> None:
        self._published.on_written(kept)
        try:
            _check(wanted, kept)
        except PublicationError:
            self._delete(kept)
            raise

    def _delete(self, obsolete: Object) -> None:
        with suppress(NotFound):  # somebody was faster
            metadata = obsolete["metadata"]
            self._api.delete(RESOURCE_SLICES, metadata["name"], uid=metadata["uid"])
        self._published.on_removed(obsolete)


def _check(sent: Object, kept: Object) -> None:
    dropped = dropped_fields(sent["spec"], kept["spec"], "spec")
    if not dropped:
        return
    features = sorted({f for field, f in _FEATURES.items() if any(field in d for d in dropped)})
    raise PublicationError(
        f"the API server drops {', '.join(dropped[:3])} from ResourceSlices",
        remedy=f"enable the feature gate {' and '.join(features)} on the API server"
        if features
        else "use Kubernetes 1.36 or newer",
    )
