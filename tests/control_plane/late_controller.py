"""The controller, to which one kind of answer comes late: not before a file is gone.

    python -m tests.control_plane.late_controller <verb> <plural> <file> <flags of the controller>

The verb is `watch` (events wait) or `get` (the answer waits).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from controller import main
from dra_driver.kube.api import Watch, WatchEvent
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object

_LOOK_SECONDS = 0.02


def late(verb: str, plural: str, file: Path) -> tuple[str, ...]:
    """The program, as `start_controller` takes it."""
    return (__name__, verb, plural, str(file))


class LateWatch:
    """Events wait as long as the file exists."""

    def __init__(self, watch: Watch, file: Path) -> None:
        self._watch = watch
        self._file = file

    def __iter__(self) -> Iterator[WatchEvent]:
        for event in self._watch:
            wait_for_the_end_of(self._file)
            yield event

    def close(self) -> None:
        self._watch.close()


class LateClient:
    """A client one of whose calls is late for one kind."""

    def __init__(self, client: Client, verb: str, plural: str, file: Path) -> None:
        self._client = client
        self._late = (verb, plural)
        self._file = file

    def get(self, resource: Resource, name: str, **chosen: Any) -> Object:
        found = self._client.get(resource, name, **chosen)
        if self._late == ("get", resource.plural):
            wait_for_the_end_of(self._file)
        return found

    def watch(self, resource: Resource, **chosen: Any) -> Watch:
        watch = self._client.watch(resource, **chosen)
        return LateWatch(watch, self._file) if self._late == ("watch", resource.plural) else watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def wait_for_the_end_of(file: Path) -> None:
    while file.exists():
        time.sleep(_LOOK_SECONDS)  # there is nothing to wait for but the file


def run(verb: str, plural: str, file: Path) -> None:
    def connect_late(*args: Any, **chosen: Any) -> LateClient:
        return LateClient(connect(*args, **chosen), verb, plural, file)

    with patch.object(main, "connect", connect_late):
        main.main()


if __name__ == "__main__":
    run(sys.argv.pop(1), sys.argv.pop(1), Path(sys.argv.pop(1)))
