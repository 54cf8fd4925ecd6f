"""Run a builder such that nothing of it outlives it: no process, no mount, no file elsewhere."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.build import Report
from tests.cluster.errors import BuildError

_REPORT_SECONDS = 10.0
_TAIL_LINES = 40

# buildah notes where it saw layers in /var/lib/containers/cache, and no option moves that.
_ENTER = 'mkdir -p /var/lib/containers && mount -t tmpfs tmpfs /var/lib/containers && exec "$@"'


def run_contained(
    command: Sequence[str | Path],
    *,
    title: str,
    report: Report,
    scratch: Path,
    network: bool,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run to its end, telling every ten seconds that it goes on.

    It is the first process of a namespace, so it ends with this one, its children with it, and
    their mounts with them. `scratch` takes its temporary files and its output. Without
    `network` it has none.
    Raises BuildError with the end of its output.
    """
    wrapped = [*_namespaces(network=network), "sh", "-c", _ENTER, "sh", *command]
    variables = {**os.environ, **(environment or {}), "TMPDIR": str(scratch)}
    log = scratch / "output.log"
    started = time.monotonic()
    report(f"{title}: begins")
    with log.open("w") as output:
        process = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
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
    report(f"{title}: done in {time.monotonic() - started:.0f} s")


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
