"""``kubectl gcu view``: follows the cluster, serves the page, and opens it."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError, Unavailable
from dra_driver.model.errors import InvalidValue
from dra_driver.util.hooks import ChangeHook
from kubectl_gcu.scheduling.explain import explain_pod
from kubectl_gcu.scheduling.explanation import statements
from kubectl_gcu.view.live_cluster import LiveCluster
from kubectl_gcu.view.page import one_file
from kubectl_gcu.view.publisher import PagePublisher
from kubectl_gcu.view.server import PageServer

_NOTICE: Final = 1.0  # seconds until the page says that the server is lost
_PATIENCE: Final = 60.0  # seconds for the lists of a page that is written to a file
_MOST_EXPLAINED: Final = 20  # pods; each reads the cluster again


def view(api: Api, options: Namespace, out: TextIO, stop: threading.Event) -> None:
    """Serve the page until `stop` is set, or write it to ``options.output``. Raises KubeError where
    the server does not answer, and InvalidValue for a port or a file that cannot be used."""
    hook = ChangeHook()
    cluster = LiveCluster(api, options.namespace, hook)
    publisher = PagePublisher(cluster.snapshot)
    hook.subscribe(publisher.on_change)
    if options.output:
        with _following(cluster):
            text = one_file(_moment(api, cluster))
        _write(options.output, text)
        out.write(f"written: {options.output}\n")
        return
    server = PageServer(options.port, publisher, Explainer(api))
    with _following(cluster):
        server.start()
        out.write(f"{server.address}\nThe address is good for one visit. Ctrl-C ends the page.\n")
        out.flush()
        if not options.no_open and _has_screen(os.environ):
            webbrowser.open(server.address)
        _watch_problems(cluster, publisher, stop)
        publisher.stop()
        server.stop()


def _has_screen(environ: Mapping[str, str]) -> bool:
    """Whether a browser has where to open. Without one Python would start one in the terminal, and
    wait for its end."""
    graphic = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not sys.platform.startswith("linux") or any(environ.get(name) for name in graphic)


@contextmanager
def _following(cluster: LiveCluster) -> Iterator[None]:
    cluster.start()
    try:
        yield
    finally:
        cluster.stop()


def _watch_problems(cluster: LiveCluster, publisher: PagePublisher, stop: threading.Event) -> None:
    """Publish also that nothing can be followed any more, which no object says."""
    known: tuple[bool, str] | None = None
    while not stop.wait(_NOTICE):
        now = (cluster.is_synced(), cluster.problem())
        if now != known:
            publisher.on_change()
        known = now


class Explainer:
    """What `explain` says about a pod, for the page."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def __call__(self, namespace: str, name: str) -> dict[str, Any]:
        """``statements``, each a label and a text; and ``error``, empty if there is none."""
        now = datetime.now(UTC)
        try:
            found = explain_pod(self._api, namespace, name, now=now)
        except (KubeError, InvalidValue) as error:
            return {"statements": [], "error": str(error)}
        said = [*statements(found), *([("missing", found.missing)] if found.missing else [])]
        return {"statements": said, "error": ""}


def _moment(api: Api, cluster: LiveCluster) -> dict[str, Any]:
    """What the page shows now. Raises Unavailable where the server does not send its lists."""
    pause = threading.Event()
    for _ in range(int(_PATIENCE / 0.1)):
        if cluster.is_synced():
            break
        pause.wait(0.1)
    else:
        raise Unavailable(f"the cluster cannot be read: {cluster.problem() or 'no answer'}")
    data, explain = cluster.snapshot().data(), Explainer(api)
    first = data["waiting"][:_MOST_EXPLAINED]
    explained = {each["uid"]: explain(each["namespace"], each["name"]) for each in first}
    return data | {
        "explained": explained,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}") from error
