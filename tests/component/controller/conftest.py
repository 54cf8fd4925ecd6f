"""Controllers on a fake API server; the test plays what else there is in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.component.controller.replica import Replica
from tests.component.controller.stage import Stage
from tests.fake_api.api import FakeApi
from tests.fake_api.server import FakeServer

Start = Callable[..., Replica]


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    """All that controllers log is shown where a test failed."""
    caplog.set_level("INFO")


@pytest.fixture
def stage() -> Stage:
    return Stage(FakeApi())


@pytest.fixture
def server(stage: Stage, tmp_path: Path) -> Iterator[FakeServer]:
    with closing(FakeServer(stage.api, tmp_path / "kubeconfig")) as found:
        yield found


@pytest.fixture
def start_controller(stage: Stage, server: FakeServer) -> Iterator[Start]:
    """Starts a controller with other settings than the short ones; the first one leads."""
    started: list[Replica] = []

    def start(name: str = "replica-0", **settings: Any) -> Replica:
        found = Replica(server.kubeconfig, name, **settings)
        started.append(found)
        return found

    yield start
    for each in started:
        each.stop()
