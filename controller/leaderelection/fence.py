"""The fence: nothing is written once our leadership may have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from dra_driver.kube.api import NOTHING, ObjectApi, PatchType
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object
from dra_driver.model.errors import Refused


class NotLeader(Refused):
    """Another replica may be the leader by now; nothing was written."""


def boottime() -> float:
    """Seconds on a clock that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence:
    """Open until a deadline on `clock`, which must count suspended time: a process that was
    stopped in the middle must not find its fence still open when it goes on.

    It opens for a *term* of leadership, which has a name that no other term has. What is written
    belongs to the term that was accepted last; a write of an older one is refused even where
    this replica leads again, because another may have led in between.
    """

    def __init__(self, clock: Callable[[], float] = boottime) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._term = ""
        self._accepted: str | None = None

    @property
    def term(self) -> str:
        """The term for which the fence was opened last."""
        return self._term

    def open_until(self, deadline: float, term: str) -> None:
        self._term = term
        self._deadline = deadline

    def close(self) -> None:
        self._deadline = 0.0

    def is_open(self) -> bool:
        return self._clock() < self._deadline

    def accept(self) -> str:
        """From now on, write in the present term; gives it."""
        term = self._accepted = self._term
        return term

    def check(self) -> None:
        """Raises NotLeader when the deadline has passed, or another term has begun."""
        if not self.is_open() or self._accepted != self._term:
            raise NotLeader("this replica does not hold the lease: nothing was written")


class FencedApi:
    """An `ObjectApi` whose every write checks the fence first."""

    def __init__(self, api: ObjectApi, fence: Fence) -> None:
        self._api = api
        self._fence = fence

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self._api.get(resource, name, namespace=namespace)

    def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        self._fence.check()
        return self._api.create(resource, body, dry_run=dry_run)

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        self._fence.check()
        return self._api.replace(resource, body, subresource=subresource)

    def add_metadata(
        self,
        resource: Resource,
        obj: Object,
        *,
        finalizers: Sequence[str] = (),
        annotations: Mapping[str, str] = NOTHING,
    ) -> Object:
        self._fence.check()
        return self._api.add_metadata(resource, obj, finalizers=finalizers, annotations=annotations)

    def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Sequence[Object],
        *,
        namespace: str = "",
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        self._fence.check()
        return self._api.patch(
            resource,
            name,
            body,
            namespace=namespace,
            patch_type=patch_type,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        self._fence.check()
        self._api.delete(
            resource, name, namespace=namespace, uid=uid, resource_version=resource_version
        )
