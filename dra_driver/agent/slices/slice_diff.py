"""The writes that make the slices on the server equal to the desired ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from dra_driver.agent.slices.slices import SliceForm, desired_slices, is_hidden, name_of
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import LABEL_MODEL, pool_name

_TIME = "timeAdded"
_LAST_GENERATION: Final = 2**63 - 1  # resource.k8s.io/v1, ResourcePool.generation is an int64


class SliceDiff(msgspec.Struct, frozen=True):
    """The writes, in the order in which they must be made: deletions, updates, creations, and the
    deletion of superseded slices: hidden ones, once there are visible ones.

    `desired` are all slices that the server should have afterwards.
    """

    desired: tuple[Object, ...]
    delete: tuple[Object, ...] = ()
    update: tuple[Object, ...] = ()
    create: tuple[Object, ...] = ()
    superseded: tuple[Object, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.update or self.create or self.superseded)


def diff_slices(
    node: Mapping[str, Any],
    devices: Sequence[Object],
    current: Sequence[Object],
    form: SliceForm = SliceForm.VISIBLE,
) -> SliceDiff:
    """The writes that publish `devices` in that form, if `current` are this driver's slices of that
    node, in either form.

    A change of one slice keeps the pool's generation. A change of several slices, or of their
    number, needs the next generation: no reader must take half a change for the pool.
    """
    pool = pool_name(node["metadata"]["name"])
    # A slice cannot move to another pool, and no generation follows the last one.
    in_pool = {
        name_of(s): s
        for s in current
        if s["spec"]["pool"]["name"] == pool and s["spec"]["pool"]["generation"] < _LAST_GENERATION
    }
    generation = max((s["spec"]["pool"]["generation"] for s in in_pool.values()), default=1)
    desired = desired_slices(node, devices, generation, form)
    known = {name_of(s): in_pool[name_of(s)] for s in desired if name_of(s) in in_pool}
    different = [s for s in desired if not _same(s, known.get(name_of(s)))]
    obsolete = [s for s in current if known.get(name_of(s)) is not s]
    # Visible slices do not stay until there are hidden ones: beside a server that needs hidden
    # slices kube-scheduler would allocate their devices.
    superseded = [s for s in obsolete if form is SliceForm.VISIBLE and is_hidden(s)]
    only_one_updated = len(different) == 1 and not obsolete and len(known) == len(desired)
    if current and (different or obsolete) and not only_one_updated:
        different = desired = desired_slices(node, devices, generation + 1, form)
    return SliceDiff(
        desired=tuple(desired),
        delete=tuple(s for s in obsolete if s not in superseded),
        update=tuple(_as_update_of(known[name_of(s)], s) for s in different if name_of(s) in known),
        create=tuple(s for s in different if name_of(s) not in known),
        superseded=tuple(superseded),
    )


def _same(wanted: Object, found: Object | None) -> bool:
    if found is None:
        return False
    return _comparable(wanted) == _comparable(found)


def _comparable(published: Object) -> tuple[Any, Any, Any]:
    """Spec, owner and our label, without the times of the taints, which the server adds."""
    spec = published["spec"]
    devices = [
        {**device, "taints": [_timeless(taint) for taint in device.get("taints", ())]}
        for device in spec.get("devices", ())
    ]
    metadata = published["metadata"]
    label = (metadata.get("labels") or {}).get(LABEL_MODEL)
    return {**spec, "devices": devices}, metadata.get("ownerReferences"), label


def _timeless(taint: Object) -> Object:
    return {key: value for key, value in taint.items() if key != _TIME}


def _as_update_of(found: Object, wanted: Object) -> Object:
    """`wanted` as an update of exactly the version `found`: a newer version is a conflict."""
    metadata = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
    spec = wanted["spec"]
    if "devices" in spec:
        before = {device["name"]: device for device in found["spec"].get("devices", ())}
        devices = [
            _with_times(device, before.get(device["name"], {})) for device in spec["devices"]
        ]
        spec = {**spec, "devices": devices}
    return {**wanted, "metadata": {**wanted["metadata"], **metadata}, "spec": spec}


def _with_times(device: Object, before: Object) -> Object:
    """The device, with the known time of each taint. Without it the server would set a new time at
    every update, and a pod's ``tolerationSeconds`` would begin again."""
    known = [taint for taint in before.get("taints", ()) if _TIME in taint]
    taints = [
        next((each for each in known if _timeless(each) == _timeless(taint)), taint)
        for taint in device.get("taints", ())
    ]
    return {**device, "taints": taints} if taints else device
