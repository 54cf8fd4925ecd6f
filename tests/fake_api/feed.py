"""A watch of what is stored."""

from __future__ import annotations

import time
from collections.abc import Iterator

from dra_driver.kube.api import Change, WatchEvent
from dra_driver.kube.decode import Decoder
from dra_driver.kube.encode import encode
from tests.fake_api.faults import Call, Faults
from tests.fake_api.selectors import Selects
from tests.fake_api.store import Entry, Store, copied


class Feed:
    """What changes among the selected objects of a kind after a version, for some seconds.

    Its last event is a bookmark.
    """

    def __init__(
        self,
        store: Store,
        faults: Faults,
        call: Call,
        namespace: str,
        selects: Selects,
        *,
        version: int,
        seconds: float,
    ) -> None:
        self._store = store
        self._faults = faults
        self._call = call
        self._resource = call.resource
        self._namespace = namespace
        self._selects = selects
        self._end = time.monotonic() + seconds
        self._closed = False
        with store.changed:
            self._version = version
            store.check(version)

    def __iter__(self) -> Iterator[WatchEvent]:
        while not self._closed:
            entries, is_over = self._next()
            for entry in entries:
                event = self._event(entry)
                self._version = int((entry.new or entry.old or {})["metadata"]["resourceVersion"])
                if event is not None:
                    self._faults.answer(self._call)
                    yield event
            if is_over and not self._closed:
                yield self._bookmark(self._version)
                return

    def close(self) -> None:
        """End the iteration, from any thread."""
        with self._store.changed:
            self._closed = True
            self._store.changed.notify_all()

    def _next(self) -> tuple[list[Entry], bool]:
        """The changes that were not told, once there are any, and whether the time is over."""
        with self._store.changed:
            while not self._closed:
                left = self._end - time.monotonic()
                if (entries := self._store.after(self._version)) or left <= 0:
                    return entries, left <= 0
                self._store.changed.wait(left)
        return [], True

    def _event(self, entry: Entry) -> WatchEvent | None:
        """None where the change is none of what is selected."""
        key = entry.key
        if key.resource != self._resource or self._namespace not in {"", key.namespace}:
            return None
        was, is_now = (each is not None and self._selects(each) for each in (entry.old, entry.new))
        if is_now and entry.new is not None:
            return WatchEvent(Change.MODIFIED if was else Change.ADDED, entry.new)
        if not was or entry.old is None:
            return None
        version = (entry.new or entry.old)["metadata"]["resourceVersion"]
        metadata = entry.old["metadata"] | {"resourceVersion": version}
        return WatchEvent(Change.DELETED, entry.old | {"metadata": metadata})

    def _bookmark(self, version: int) -> WatchEvent:
        kind = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        metadata = {"resourceVersion": str(version)}
        return WatchEvent(Change.BOOKMARK, {**kind, "metadata": metadata})


class DecodedFeed:
    """A feed whose objects are as a client decodes them."""

    def __init__(self, feed: Feed, decoder: Decoder) -> None:
        self._feed = feed
        self._decoder = decoder

    def __iter__(self) -> Iterator[WatchEvent]:
        for each in self._feed:
            if each.change is Change.BOOKMARK:
                yield WatchEvent(each.change, copied(each.object))
            else:
                yield WatchEvent(each.change, self._decoder.decode(encode(each.object)))

    def close(self) -> None:
        self._feed.close()
