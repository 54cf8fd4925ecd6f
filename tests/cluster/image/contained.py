"""Run a builder such that nothing of it outlives it: no process, no mount, no file elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.build import Report
from tests.cluster.errors import BuildError

WORK = "work"
"""Below the folder of a run: its temporary files, gone when it ends."""

_OUTPUT = "output.log"
_REPORT_SECONDS = 10.0
_TAIL_LINES = 40

# Copying a file tree to a disk can take several times as long as to memory. And buildah notes
# where it saw layers in /var/lib/containers/cache, which no option moves.
_ENTER = """
set -e
mkdir -p "$TMPDIR" /var/lib/containers
[ "$WORK_IN_MEMORY" = no ] || mount -t tmpfs -o mode=700 tmpfs "$TMPDIR"
mount -t tmpfs tmpfs /var/lib/containers
exec "$@"
"""
_MEMORY_KIB = 4 << 20


def run_contained(
    command: Sequence[str | Path], *, title: str, report: Report, folder: Path, network: bool
) -> None:
    """Run to its end, telling every ten seconds that it goes on.

    It is the first process of a namespace, so it ends with this one, its children with it, and
    their mounts with them. `folder` takes its output and its temporary files. Without `network`
    it has none.
    Raises BuildError with the end of its output.
    """
    wrapped = [*_namespaces(network=network), "sh", "-c", _ENTER, "sh", *command]
    work = folder / WORK
    in_memory = available_kib(Path("/proc/meminfo").read_text()) >= _MEMORY_KIB
    variables = {"TMPDIR": str(work), "WORK_IN_MEMORY": "yes" if in_memory else "no"}
    log = folder / _OUTPUT
    started = time.monotonic()
    report(f"{title}: begins")
    with log.open("w") as output:
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            umask=0o022,
        )
        try:
            status = _wait(process, lambda so_far: report(f"{title}: {so_far}"))
        finally:
            process.kill()
            process.wait()
    if status:
        tail = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        words = " ".join(str(word) for word in command)
        raise BuildError(f"{words}: exit status {status}\n" + "\n".join(tail))
    log.unlink()
    shutil.rmtree(work)
    report(f"{title}: done in {time.monotonic() - started:.0f} s")


def available_kib(meminfo: str) -> int:
    """MemAvailable of the text of /proc/meminfo, 0 when it is not told."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    return 0


def _namespaces(*, network: bool) -> tuple[str, ...]:
    """The death of this process kills unshare, and unshare's kills the namespace's first."""
    own_network = () if network else ("--net",)
    unshare = ("unshare", "--mount", "--propagation", "private", "--pid", "--mount-proc", "--fork")
    return ("setpriv", "--pdeathsig", "KILL", *unshare, "--kill-child", *own_network)


def _wait(process: subprocess.Popen[bytes], still_running: Report) -> int:
    started = time.monotonic()
    while True:
        try:
            return process.wait(timeout=_REPORT_SECONDS)
        except subprocess.TimeoutExpired:
            still_running(f"{time.monotonic() - started:.0f} s")
