"""The journal's folder on a disk that is full, or cannot be written to."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster.waiting import wait_until
from tests.kill.grants import Kind, wanted
from tests.kill.node import Node
from tests.kill.outside import check

pytestmark = pytest.mark.control_plane

_SIZE = 3 << 20  # room for one journal and the next, which replaces it


@pytest.fixture
def disk(node: Node) -> Iterator[Node]:
    """A node whose state lies on a small disk of its own."""
    node.state.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(node.state))
    yield node
    node.down()
    # A call of efsmi that outlives its agent holds a lock file there.
    wait_until(lambda: _unmounted(node), 60.0, "an end of all that uses the disk")


def _unmounted(node: Node) -> bool:
    return subprocess.run(["umount", str(node.state)], check=False).returncode == 0


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def fill(node: Node) -> None:
    """Leave not a byte on the disk."""
    with (node.state / "other").open("wb") as file:
        left = os.statvfs(node.state)
        file.write(bytes(left.f_bavail * left.f_frsize))


@pytest.mark.parametrize(
    "kind",
    [
        Kind.DRS,
        *(pytest.param(kind, marks=pytest.mark.matrix) for kind in Kind if kind is not Kind.DRS),
    ],
)
def test_pods_come_and_go_on_a_full_disk(disk: Node, kind: Kind) -> None:
    """While the agent runs on, and after it was killed."""
    disk.serve_others()
    fill(disk)
    ref = disk.add(wanted(kind))
    assert disk.kubelet.prepare(ref) == ""
    check(disk)
    disk.down()
    disk.up()
    check(disk)
    assert disk.kubelet.prepare(ref) == ""
    assert disk.kubelet.unprepare(ref) == ""
    del disk.held[ref]
    check(disk)


def test_an_agent_waits_for_a_disk_that_cannot_be_written_to(disk: Node) -> None:
    disk.serve_others()
    disk.down()
    _mount("-o", "remount,ro", str(disk.state))
    disk.boot()
    wait_until(lambda: "Read-only" in disk.log(), 60.0, "a warning", seen=disk.log)
    check(disk)
    assert not disk.agent.ended(1.0)
    _mount("-o", "remount,rw", str(disk.state))
    ref = disk.add(wanted(Kind.DRS_BESIDE))
    assert disk.kubelet.prepare(ref) == ""
    check(disk)
