"""What is remembered about a running cluster, so that any process can use it or remove it.

Below RUN_ROOT each cluster has one folder, made before and removed after everything else of it:

    cluster.json          the settings, the slot and the owner
    processes/NAME.json   the process of each component
    pki/ kubeconfig/ log/ etcd/ bin/ nodes/NAME/
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.cache import cache_root, locked
from tests.cluster.errors import ClusterError
from tests.cluster.processes import Process, ProcessTable
from tests.cluster.settings import Settings

# Not below /run or /var/lib, which a node covers with its own; short, for the sockets' sake.
RUN_ROOT = Path("/var/tmp/gcu-dra-cluster")

# Of the cluster of `make cluster-up`, `make cluster-shell` and `make demo`.
DEFAULT = "default"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True, slots=True)
class State:
    """One cluster. `owner` is the process with which it ends; None: it stays until `down`."""

    settings: Settings
    slot: int
    owner: Process | None

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def directory(self) -> Path:
        return run_directory(self.name)

    def processes(self) -> ProcessTable:
        """The cluster's components."""
        cgroup = cgroups.components(self.name)
        return ProcessTable(self.directory / "processes", self.directory / "log", cgroup)

    def save(self) -> None:
        """Write cluster.json in one step: a reader finds all of it or none."""
        path = self.directory / "cluster.json"
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(self), indent=2) + "\n")
        unfinished.rename(path)


def run_directory(name: str) -> Path:
    """The folder of the cluster. Raises ClusterError for what cannot be part of file names."""
    if not _NAME.fullmatch(name):
        raise ClusterError(
            f"cluster name {name!r}: use up to 20 lower-case letters, digits and hyphens, "
            "a letter first"
        )
    return RUN_ROOT / name


def load(name: str) -> State | None:
    """The recorded state, or None when there is no such cluster, or it was not begun in full."""
    try:
        raw = json.loads((run_directory(name) / "cluster.json").read_text())
    except FileNotFoundError:
        return None
    return State(
        settings=Settings.from_json(raw["settings"]),
        slot=raw["slot"],
        owner=Process(**raw["owner"]) if raw["owner"] else None,
    )


def names() -> tuple[str, ...]:
    """Every cluster of this machine that has a folder."""
    if not RUN_ROOT.is_dir():
        return ()
    return tuple(sorted(path.name for path in RUN_ROOT.iterdir() if path.is_dir()))


@contextmanager
def registry_lock() -> Iterator[None]:
    """Held while a cluster's folder or slot comes or goes."""
    with locked(cache_root() / "clusters.lock"):
        yield


def own_process() -> Process:
    """The process that runs this code, as an owner."""
    return Process.of(os.getpid())
