"""Parts of a control plane that a test stops, or starts anew."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.network import NETWORK, enter
from tests.cluster.processes import is_stopped
from tests.cluster.waiting import PATIENCE, wait_until

SCHEDULER = "kube-scheduler"


@contextmanager
def stopped(cluster: Cluster, name: str = SCHEDULER) -> Iterator[None]:
    """It does nothing (SIGSTOP) until the end, and then goes on with what it had in hand."""
    process = cluster.processes.get(name)
    process.send(signal.SIGSTOP)
    try:
        wait_until(lambda: is_stopped(process.pid), PATIENCE, f"{name} stopped")
        yield
    finally:
        process.send(signal.SIGCONT)


@contextmanager
def away(cluster: Cluster, name: str = SCHEDULER, *flags: str) -> Iterator[None]:
    """It is ended at once, and started at the end with the same command and these flags."""
    line = _command(cluster, name)
    process = cluster.processes.get(name)
    process.send(signal.SIGKILL)
    process.stop()
    try:
        yield
    finally:
        _start(cluster, name, *line, *flags)


@contextmanager
def replaced(cluster: Cluster, program: Path, name: str = SCHEDULER) -> Iterator[None]:
    """Until the end another program runs in its place, with the same flags."""
    _, *flags = _command(cluster, name)
    with _instead(cluster, name, str(program), *flags):
        yield


@contextmanager
def changed(cluster: Cluster, *flags: str, name: str = SCHEDULER) -> Iterator[None]:
    """Until the end it runs with these flags put after its own, where the later one wins."""
    with _instead(cluster, name, *_command(cluster, name), *flags):
        yield


@contextmanager
def _instead(cluster: Cluster, name: str, *line: str) -> Iterator[None]:
    with away(cluster, name):
        _start(cluster, name, *line)
        try:
            yield
        finally:
            cluster.processes.end(name)


def _command(cluster: Cluster, name: str) -> list[str]:
    pid = cluster.processes.get(name).pid
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")


def _start(cluster: Cluster, name: str, *line: str) -> None:
    cluster.processes.start(name, [*enter(cluster.processes.get(NETWORK)), *line])


def restart(cluster: Cluster, name: str = SCHEDULER, *flags: str) -> None:
    """End it at once and start it with the same command, and with these flags."""
    with away(cluster, name, *flags):
        pass
