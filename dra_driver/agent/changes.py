"""Which writes turn the slices on the server into the desired ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dra_driver.agent.slices import Object, desired_slices


@dataclass(frozen=True, slots=True)
class Changes:
    """The writes, to be made in this order: delete what is obsolete, then update, then create.

    `desired` is all that should stand on the server afterwards.
    """

    desired: tuple[Object, ...]
    delete: tuple[Object, ...] = ()
    update: tuple[Object, ...] = ()
    create: tuple[Object, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.update or self.create)


def plan_changes(
    node: Mapping[str, Any], devices: Sequence[Object], current: Sequence[Object]
) -> Changes:
    """The writes that publish `devices` where `current` (our slices of that node) stand.

    A change of one slice keeps the pool's generation; a change of several, or of their number,
    takes the next one, so that no reader takes half a change for a pool.
    """
    generation = max((s["spec"]["pool"]["generation"] for s in current), default=1)
    by_name = {s["metadata"]["name"]: s for s in current}
    desired = desired_slices(node, devices, generation)
    names = {s["metadata"]["name"] for s in desired}
    different = [s for s in desired if not _same(s, by_name.get(s["metadata"]["name"]))]
    obsolete = [s for s in current if s["metadata"]["name"] not in names]
    only_one_updated = len(different) == 1 and not obsolete and len(current) == len(desired)
    if current and (different or obsolete) and not only_one_updated:
        different = desired = desired_slices(node, devices, generation + 1)
    return Changes(
        desired=tuple(desired),
        delete=tuple(obsolete),
        update=tuple(
            _in_place_of(by_name[s["metadata"]["name"]], s)
            for s in different
            if s["metadata"]["name"] in by_name
        ),
        create=tuple(s for s in different if s["metadata"]["name"] not in by_name),
    )


def _same(wanted: Object, found: Object | None) -> bool:
    if found is None:
        return False
    return _comparable(wanted) == _comparable(found)


def _comparable(published: Object) -> tuple[Any, Any]:
    """Spec and owner, without what the server adds by itself (when a taint was put)."""
    spec = published["spec"]
    devices = [
        {
            **device,
            "taints": [
                {key: value for key, value in taint.items() if key != "timeAdded"}
                for taint in device.get("taints", ())
            ],
        }
        for device in spec.get("devices", ())
    ]
    return {**spec, "devices": devices}, published["metadata"].get("ownerReferences")


def _in_place_of(found: Object, wanted: Object) -> Object:
    """`wanted` as an update of just what was `found`: anything newer is a conflict."""
    known = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
    return {**wanted, "metadata": {**wanted["metadata"], **known}}
