"""Everything on this machine by which a cluster could be noticed, for the tests of tear-down."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cluster import cgroups, state
from tests.cluster.network import host_link
from tests.cluster.processes import run
from tests.cluster.state import RUN_ROOT

_NAMESPACES = ("net", "mnt", "uts")
# Not /tmp: files of others come and go there, and a cluster's lie below /var/tmp.
_FOLDERS = ("/run", "/var/lib", "/var/log", "/etc", "/opt", "/usr/libexec")


def traces(cluster: str) -> frozenset[str]:
    """Processes outside the machine's own namespaces, mounts, links, routes, cgroups and files.

    Taken from the kernel, not from the records of the cluster: what those forget is shown too. Left
    out is what clusters of other names have, which come and go meanwhile: their control groups and
    what runs in them, their links with the routes over them, and their folders.
    """
    found = [
        *(f"process {found}" for found in _processes(cluster)),
        *(f"mount {line.split()[4]}" for line in _lines("/proc/self/mountinfo")),
        *(f"link {link['ifname']}" for link in json.loads(run(["ip", "-json", "link"]))),
        *(f"route {route}" for route in run(["ip", "route"]).splitlines()),
        *(f"cgroup {group}" for top in cgroups.hierarchies() for group in _groups(top, cluster)),
        *(
            f"file {path}"
            for folder in (*map(Path, _FOLDERS), *_home(), RUN_ROOT.parent, RUN_ROOT)
            for path in _entries(folder)
        ),
    ]
    # Asked last: another cluster may have come meanwhile, which is recorded before it has anything.
    theirs = _names_of_others(cluster)
    return frozenset(trace for trace in found if theirs.isdisjoint(trace.split()))


def _names_of_others(cluster: str) -> set[str]:
    """The links and folders of clusters of other names."""
    others = [name for name in state.names() if name != cluster]
    records = filter(None, map(state.load, others))
    return {
        *(host_link(record.slot) for record in records),
        *(str(state.run_directory(name)) for name in others),
    }


def _processes(cluster: str) -> list[str]:
    """Each with its foreign namespace, which is shown to be gone when no process is in it."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            spaces = {kind: (process / "ns" / kind).readlink() for kind in _NAMESPACES}
            command = (process / "cmdline").read_text().replace("\0", " ")
            groups = (process / "cgroup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended meanwhile, or is one that root itself may not look into
        if any(cgroups.is_of_another(group, cluster) for group in groups):
            continue
        own = {kind: Path(f"/proc/self/ns/{kind}").readlink() for kind in _NAMESPACES}
        found += [f"{process.name} in {spaces[kind]}" for kind in own if spaces[kind] != own[kind]]
        if f"tests.cluster.keeper {cluster} " in f"{command} ":
            found.append(f"{process.name} keeper")
    return found


def _groups(top: Path, cluster: str) -> list[str]:
    found = (directory for directory, _, _ in os.walk(top))
    return [group for group in found if not cgroups.is_of_another(group, cluster)]


def _home() -> tuple[Path, ...]:
    """Where clients keep files of their own."""
    home = Path.home()
    return (home, home / ".cache", home / ".config", home / ".kube", home / ".kube/cache/discovery")


def _entries(folder: Path) -> list[str]:
    return [str(path) for path in folder.iterdir()] if folder.is_dir() else []


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
