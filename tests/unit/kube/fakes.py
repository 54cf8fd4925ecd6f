"""Fakes of the port `Api`, for the cases that no real server produces at will."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from dra_driver.kube.api import Change, Listing, WatchEvent
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object


class FakeWatch:
    """Yields its events, then ends, raises, or stays open until it is closed."""

    def __init__(
        self, events: Sequence[WatchEvent], error: KubeError | None = None, *, stays: bool = False
    ) -> None:
        self._events = events
        self._error = error
        self._stays = stays
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[WatchEvent]:
        yield from self._events
        if self._error is not None:
            raise self._error
        if self._stays:
            assert self.closed.wait(60)

    def close(self) -> None:
        self.closed.set()


class FakeApi:
    """Lists and watches as scripted; counts the calls. Only what a reflector calls is there."""

    def __init__(
        self,
        lists: Callable[[], Listing],
        watches: Callable[[str], FakeWatch],
    ) -> None:
        self._lists = lists
        self._watches = watches
        self.calls: list[str] = []

    def list(self, resource: Resource, **_: object) -> Listing:
        self.calls.append("list")
        return self._lists()

    def watch(self, resource: Resource, *, resource_version: str, **more: object) -> FakeWatch:
        self.calls.append(f"watch {resource_version}")
        return self._watches(resource_version)


def pod(name: str, version: int) -> Object:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


def added(name: str, version: int) -> WatchEvent:
    return WatchEvent(Change.ADDED, pod(name, version))


def bookmark(version: int) -> WatchEvent:
    return WatchEvent(Change.BOOKMARK, {"metadata": {"resourceVersion": str(version)}})
