"""Nothing of a cluster stays on the machine, however the process that owned it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import state
from tests.cluster.cluster import Cluster
from tests.cluster.processes import Process
from tests.cluster.settings import Settings
from tests.cluster.teardown import KEEPER, sweep
from tests.cluster.traces import traces
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod, wait_for_pods

pytestmark = pytest.mark.cluster

NAME = f"doomed-{os.getpid()}"

_OWNER = f"""
import sys
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
cluster = Cluster.up(Settings({NAME!r}, nodes=1), owner=own_process())
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def owner_with_a_running_pod() -> Iterator[subprocess.Popen[str]]:
    """A process that owns a cluster of one node, on which a container runs."""
    command = [sys.executable, "-c", _OWNER]
    pipe = subprocess.PIPE
    checkout = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=checkout) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "up\n"
            cluster = Cluster.attach(NAME)
            cluster.apply(pod("running", "default"))
            wait_for_pods(cluster, "default", "running")
            yield owner
        finally:
            owner.kill()


@pytest.fixture
def before() -> Iterator[frozenset[str]]:
    """What the machine shows without the cluster."""
    yield traces(NAME)
    # A failed test must not leave to the next one what it failed to remove.
    sweep()


def left_over(before: frozenset[str], during: frozenset[str]) -> frozenset[str]:
    """What the cluster brought and did not take with it.

    Only what was there while it ran: others use the machine meanwhile.
    """
    return (during - before) & traces(NAME)


def assert_nothing_left(before: frozenset[str], during: frozenset[str]) -> None:
    """The kernel takes network namespaces apart in the background: some seconds are allowed."""
    wait_until(
        lambda: not left_over(before, during),
        PATIENCE,
        "the machine to be as before",
        seen=lambda: "\n".join(sorted(left_over(before, during))),
    )


def assert_seen(before: frozenset[str], during: frozenset[str]) -> None:
    """The traces tell a running cluster from none: without this the tests could not fail."""
    kinds = {trace.split()[0] for trace in during - before}
    assert kinds >= {"process", "link", "route", "cgroup", "file"}
    pids = {trace.split()[1] for trace in during - before if trace.startswith("process")}
    record = Cluster.attach(NAME).processes
    assert pids >= {str(record.get(name).pid) for name in record.names()}


@pytest.mark.matrix
def test_killed_owner(before: frozenset[str]) -> None:
    with owner_with_a_running_pod() as owner:
        during = traces(NAME)
        assert_seen(before, during)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert_nothing_left(before, during)


@pytest.mark.matrix
def test_killed_owner_and_keeper(before: frozenset[str]) -> None:
    with owner_with_a_running_pod() as owner:
        during = traces(NAME)
        keeper: Process = Cluster.attach(NAME).processes.get(KEEPER)
        keeper.send(signal.SIGKILL)
        wait_until(lambda: not keeper.alive(), PATIENCE, "end of the keeper")
        assert sweep() == ()  # the owner lives: its cluster is left alone
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert state.load(NAME) is not None
        assert sweep() == (NAME,)
        assert_nothing_left(before, during)


@pytest.mark.matrix
def test_owner_that_ends_without_a_word(before: frozenset[str]) -> None:
    with owner_with_a_running_pod() as owner:
        during = traces(NAME)
        assert owner.stdin is not None
        owner.stdin.close()
        assert owner.wait(timeout=PATIENCE) == 0
        assert_nothing_left(before, during)


@pytest.mark.matrix
def test_owner_killed_while_it_brings_up_what_should_stay(before: frozenset[str]) -> None:
    command = [sys.executable, "-m", "tests.cluster", "up", "--nodes=1", "--name", NAME]
    checkout = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=checkout) as starter:
        assert starter.stdout is not None
        assert any("control plane" in line for line in starter.stdout)
        during = traces(NAME)
        starter.send_signal(signal.SIGKILL)
    assert during - before
    assert_nothing_left(before, during)


@pytest.mark.matrix
def test_down_of_a_cluster_without_owner(before: frozenset[str]) -> None:
    cluster = Cluster.up(Settings(NAME, nodes=1), owner=None)
    during = traces(NAME)
    cluster.down()
    assert_nothing_left(before, during)
    cluster.down()


def test_failed_start(before: frozenset[str]) -> None:
    wrong = Settings(NAME, extra_flags={"kube-scheduler": ("--no-such-flag",)})
    with pytest.raises(Exception, match="unknown flag: --no-such-flag"):
        Cluster.up(wrong, owner=state.own_process())
    assert state.load(NAME) is None
    assert not any(NAME in trace for trace in traces(NAME) - before)
