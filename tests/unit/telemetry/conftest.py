from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dra_driver.telemetry.log_file import LogFileHandler
from dra_driver.telemetry.probes import ProbeServer
from tests.unit.telemetry.asking import Serve


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that is alive and ready unless told otherwise, at any free port."""
    with ExitStack() as stack:

        def start(port: int = 0, **given: Any) -> ProbeServer:
            for check in ("ready", "live"):
                given.setdefault(check, lambda: None)
            given.setdefault("registry", CollectorRegistry())
            made = ProbeServer(port, **given)
            stack.callback(made.stop)
            made.start()
            return made

        yield start


@pytest.fixture(autouse=True)
def root_as_it_was() -> Iterator[None]:
    root, urllib3 = logging.getLogger(), logging.getLogger("urllib3")
    handlers, levels = root.handlers[:], (root.level, urllib3.level)
    yield
    for each in root.handlers:
        if isinstance(each, LogFileHandler):
            each.close()
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    urllib3.setLevel(levels[1])
