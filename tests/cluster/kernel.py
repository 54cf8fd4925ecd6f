"""What several clusters beside each other need of this machine's kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.cluster.errors import ClusterError

INOTIFY_INSTANCES: Final = Path("/proc/sys/fs/inotify/max_user_instances")

NEEDED_INSTANCES: Final = 1024
"""Debian's 128 is used up by the kubelets and containerds of some five nodes; then a containerd
starts without its CRI service ("error creating fsnotify watcher: too many open files")."""


def raise_limits(report: Callable[[str], None], instances: Path = INOTIFY_INSTANCES) -> None:
    """Raise the limit of inotify instances if it is too low. It stays so until the next boot.

    Raises ClusterError with the command to run where it cannot be written.
    """
    found = int(instances.read_text())
    if found >= NEEDED_INSTANCES:
        return
    try:
        instances.write_text(str(NEEDED_INSTANCES))
    except OSError as error:
        raise ClusterError(
            f"{instances} is {found}, which is too low for several clusters, and cannot be raised "
            f"({error}); run `sysctl fs.inotify.max_user_instances={NEEDED_INSTANCES}` on the host"
        ) from error
    report(f"fs.inotify.max_user_instances: raised from {found} to {NEEDED_INSTANCES}")
