"""The agent's calls of its own sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from dra_driver.kubelet_api.broadcaster import STREAMS
from dra_driver.kubelet_api.dra.plugin import KubeletPlugin, SelfCheck
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claims.claim import ClaimRef
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.callers import Observer
from tests.unit.kubelet_api.dra.handler import ONE, Handler

UIDS = ("0b6a1f7e-3f0c-4f3a-9f29-5e7b0a5b6a11", "11111111-3f0c-4f3a-9f29-5e7b0a5b6a11")


class Slow(Handler):
    """Keeps each call until all are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.called = threading.Semaphore(0)
        self.go = threading.Event()

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> dict[str, tuple[()]]:
        self.called.release()
        assert self.go.wait(fake_kubelet.PATIENCE)
        return {ref.uid: () for ref in refs}


@pytest.fixture
def both(root: Path) -> Iterator[tuple[Sockets, Sockets]]:
    """Two agents side by side."""
    first, second = (Sockets.of(root, uid) for uid in UIDS)
    plugins = [KubeletPlugin(Handler(), list, sockets, Observer()) for sockets in (first, second)]
    for plugin in plugins:
        plugin.start()
    yield first, second
    for plugin in plugins:
        plugin.stop(grace=1)


def problem(sockets: Sockets, *, patience: float = fake_kubelet.PATIENCE) -> str | None:
    check = SelfCheck(sockets, patience=patience)
    check.check()
    return check.problem


@pytest.mark.parametrize("name", ["service", "registration"])
def test_a_socket_that_somebody_removed_is_told(both: tuple[Sockets, Sockets], name: str) -> None:
    assert [problem(sockets) for sockets in both] == [None, None]
    mine, others = both
    path: Path = getattr(mine, name)
    check = SelfCheck(mine)
    check.check()
    path.unlink()
    check.check()
    assert check.problem is not None
    assert check.problem.startswith(f"the agent does not answer on {path}: UNAVAILABLE")
    assert problem(others) is None


def test_an_answer_by_somebody_else_is_told(both: tuple[Sockets, Sockets]) -> None:
    mine, others = both
    mixed = Sockets(service=mine.service, registration=others.registration)
    assert problem(mixed) == (
        f"another program answers on {others.registration}, and sends the kubelet to "
        f"{others.service}"
    )


def test_who_is_busy_is_given_time(root: Path) -> None:
    """All threads are taken: the call waits for its turn, and counts as unanswered at its end."""
    handler = Slow()
    sockets = Sockets.of(root)
    plugin = KubeletPlugin(handler, list, sockets, Observer(), threads=1)
    plugin.start()
    callers = [
        threading.Thread(target=fake_kubelet.prepare_v1, args=[sockets.service, ONE])
        for _ in range(1 + STREAMS)
    ]
    for caller in callers:
        caller.start()
    for _ in callers:
        assert handler.called.acquire(timeout=fake_kubelet.PATIENCE)
    assert "DEADLINE_EXCEEDED" in str(problem(sockets, patience=0.2))
    letting_go = threading.Timer(0.2, handler.go.set)
    letting_go.start()
    assert problem(sockets) is None
    for thread in (letting_go, *callers):
        thread.join()
    plugin.stop(grace=1)


def test_it_asks_by_itself_until_it_is_stopped(both: tuple[Sockets, Sockets]) -> None:
    mine, _ = both
    mine.service.unlink()
    check = SelfCheck(mine, interval=0.01)
    check.start()
    for _ in range(1000):
        if check.problem is not None:
            break
        check._wait(0.01)
    assert check.problem is not None
    check.stop(fake_kubelet.PATIENCE)
    assert not check.is_alive()
