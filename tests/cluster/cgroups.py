"""A cluster's control groups: where its processes are counted, and by which they are found.

Everything of a cluster lives below `gcu-dra/<cluster>` in each hierarchy: the components in
`components`, the containers of a node in a folder of the node's name (the kubelet's cgroupRoot).
So the kernel itself keeps the list of what tear-down has to kill.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.waiting import PATIENCE, wait_until

_PARENT = "gcu-dra"
_COMPONENTS = "components"


def hierarchies() -> tuple[Path, ...]:
    """The mount points of all hierarchies: one for each v1 controller, and the v2 one."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount_point, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            found.append(Path(mount_point))
    if not found:
        raise ClusterError("no control groups are mounted below /sys/fs/cgroup; mount them first")
    return tuple(found)


def kubelet_root(cluster: str, node: str) -> str:
    """The kubelet's cgroupRoot."""
    return f"/{_PARENT}/{cluster}/{node}"


def is_of_another(group: str, cluster: str) -> bool:
    """Whether the group's path is one of a cluster of another name."""
    _, _, below = group.partition(f"/{_PARENT}/")
    return bool(below) and below.partition("/")[0] != cluster


def components(cluster: str) -> Path:
    """The group that components are put into."""
    return _tracking_hierarchy() / _PARENT / cluster / _COMPONENTS


def create(cluster: str, nodes: Iterable[str]) -> None:
    """Make the cluster's groups in every hierarchy."""
    for hierarchy in hierarchies():
        for leaf in (_COMPONENTS, *nodes):
            group = hierarchy
            for part in (_PARENT, cluster, leaf):
                group = group / part
                _hand_down_controllers(group.parent)
                group.mkdir(exist_ok=True)
                _inherit_cpuset(group)


def kill(cluster: str) -> None:
    """SIGKILL everything in the cluster's groups; returns when nothing runs in them any more.

    Raises WaitTimeout with the ids of processes that do not die.
    """
    groups = [hierarchy / _PARENT / cluster for hierarchy in hierarchies()]

    def none_left() -> bool:
        # All hierarchies: a container is in each of them, but a component in one alone.
        pids = {pid for group in groups for pid in _processes(group)}
        for pid in pids:
            _send_kill(pid)
        return not pids

    def remaining() -> str:
        return f"process ids {sorted({pid for group in groups for pid in _processes(group)})}"

    wait_until(none_left, PATIENCE, f"end of {cluster}'s processes", seen=remaining, interval=0.02)


def remove(cluster: str) -> None:
    """Remove the cluster's emptied groups, and the common parent if this was the last cluster."""
    for hierarchy in hierarchies():
        top = hierarchy / _PARENT / cluster
        wait_until(
            partial(_remove_tree, top),
            PATIENCE,
            f"removal of {top}",
            retry_on=(OSError,),
        )
        parent = hierarchy / _PARENT
        if parent.is_dir() and not any(child.is_dir() for child in parent.iterdir()):
            parent.rmdir()


def exists(cluster: str) -> bool:
    """Whether any group of the cluster is there."""
    return any((hierarchy / _PARENT / cluster).is_dir() for hierarchy in hierarchies())


def _tracking_hierarchy() -> Path:
    """Any one that has no controller whose limits or files would matter to the components."""
    found = hierarchies()
    return next((path for path in found if path.name == "pids"), found[0])


def _hand_down_controllers(parent: Path) -> None:
    """In v2 a group has only the controllers that its parent hands down; the kubelet wants all."""
    switch = parent / "cgroup.subtree_control"
    if switch.exists():
        for controller in (parent / "cgroup.controllers").read_text().split():
            switch.write_text(f"+{controller}")


def _inherit_cpuset(group: Path) -> None:
    """A new v1 cpuset is empty, and no process can enter it before it is filled."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = group / name
        if file.exists() and not file.read_text().strip():
            file.write_text((group.parent / name).read_text())


def _processes(group: Path) -> list[int]:
    found: list[int] = []
    for directory, _, files in os.walk(group):
        if "cgroup.procs" in files:
            try:
                found += map(int, (Path(directory) / "cgroup.procs").read_text().split())
            except OSError:
                continue  # the group went away under our hands
    return [pid for pid in found if pid]  # 0: a process of a foreign pid namespace


def _send_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _remove_tree(top: Path) -> bool:
    for directory, _, _ in os.walk(top, topdown=False):
        Path(directory).rmdir()
    return True
