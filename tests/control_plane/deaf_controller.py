"""The controller, which hears nothing of pods while a file exists: its watch is late.

python -m tests.control_plane.deaf_controller <file> <flags of the controller>
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

_LOOK_SECONDS = 0.02


class LateWatch:
    """Events wait as long as the file exists."""

    def __init__(self, watch: Watch, muffled: Path) -> None:
        self._watch = watch
        self._muffled = muffled

    def __iter__(self) -> Iterator[WatchEvent]:
        for event in self._watch:
            while self._muffled.exists():
                time.sleep(_LOOK_SECONDS)  # there is nothing to wait for but a file
            yield event

    def close(self) -> None:
        self._watch.close()


class DeafClient:
    """A client whose watch of the kind `plural` is late."""

    def __init__(self, client: Client, plural: str, muffled: Path) -> None:
        self._client = client
        self._plural = plural
        self._muffled = muffled

    def watch(self, resource: Resource, **chosen: Any) -> Watch:
        watch = self._client.watch(resource, **chosen)
        return LateWatch(watch, self._muffled) if resource.plural == self._plural else watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


if __name__ == "__main__":
    plural, file = sys.argv.pop(1), Path(sys.argv.pop(1))
    with patch.object(main, "connect", lambda *a, **k: DeafClient(connect(*a, **k), plural, file)):
        main.main()
