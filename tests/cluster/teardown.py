"""Remove a cluster so that nothing of it is left, whatever state it is in."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from tests.cluster import cgroups, state
from tests.cluster.errors import ClusterError, CommandError
from tests.cluster.network import host_link
from tests.cluster.processes import run
from tests.cluster.waiting import PATIENCE, wait_until

KEEPER = "keeper"


def tear_down(name: str) -> bool:
    """Remove the cluster; False when there was none.

    Raises ClusterError when something does not go away.
    """
    with state.registry_lock():
        return _tear_down(name)


def sweep() -> tuple[str, ...]:
    """Remove the clusters whose owners died together with their keepers; gives their names."""
    with state.registry_lock():
        return tuple(name for name in state.names() if _abandoned(name) and _tear_down(name))


def _abandoned(name: str) -> bool:
    found = state.load(name)
    # Folder and record come under the registry's lock, which is held: without a record, the
    # process that was about to write it is dead.
    return found is None or (found.owner is not None and not found.owner.alive())


def _tear_down(name: str) -> bool:
    directory = state.run_directory(name)
    if not directory.is_dir():
        return False
    found = state.load(name)
    if found is not None:
        _stop_keeper(found)
    cgroups.kill(name)
    if found is not None:
        _remove_link(host_link(found.slot))
    cgroups.remove(name)
    _remove_directory(directory)
    return True


def _stop_keeper(found: state.State) -> None:
    record = found.directory / "processes" / f"{KEEPER}.json"
    if not record.exists():
        return
    keeper = found.processes().get(KEEPER)
    if keeper.pid != os.getpid():
        keeper.send(signal.SIGKILL)


def _remove_link(link: str) -> None:
    """The kernel removes it with the namespace of its peer, but takes its time for that."""
    exists = Path(f"/sys/class/net/{link}").exists
    if exists():
        try:
            run(["ip", "link", "delete", link])
        except CommandError:
            wait_until(lambda: not exists(), PATIENCE, f"removal of link {link}")


def _remove_directory(directory: Path) -> None:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    inside = [mount for mount in mounts if mount.startswith(f"{directory}/")]
    if inside:
        # Deleting through a mount would delete what is mounted.
        raise ClusterError(f"{directory}: not removed, still mounted: {', '.join(inside)}")
    shutil.rmtree(directory)
    if not any(directory.parent.iterdir()):
        directory.parent.rmdir()
