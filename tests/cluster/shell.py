"""A person's way into a running cluster: a shell in which its tools are at hand."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.cluster import Cluster

_CHECKOUT = Path(__file__).parents[2]


def run_shell(cluster: Cluster, command: Sequence[str]) -> int:
    """Run the command, or the user's own shell, with the cluster's tools; gives its status. Of a
    shell that a person types in it is 0: it would be that of the last command, which need not
    have been meant to succeed."""
    tools = write_tools(cluster)
    environment = {
        **os.environ,
        **cluster.environment(),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    shell = [os.environ.get("SHELL", "/bin/sh")]
    status = subprocess.run([*(command or shell)], env=environment, check=False).returncode
    return 0 if not command and sys.stdin.isatty() else status


def write_tools(cluster: Cluster) -> Path:
    """A folder with kubectl, helm, `kubectl-gcu` of this checkout, which kubectl finds as its
    plugin, and for each node `on-NODE` and `ctr-NODE`."""
    folder = cluster.directory / "bin"
    folder.mkdir(exist_ok=True)
    for program in ("kubectl", "helm"):
        link = folder / program
        link.unlink(missing_ok=True)
        link.symlink_to(cluster.programs / program)
    # -P: the folder in which the user is may have a package of the same name.
    gcu = shlex.join([sys.executable, "-P", "-m", "kubectl_gcu.main"])
    _write_script(
        folder / "kubectl-gcu", f'PYTHONPATH={shlex.quote(str(_CHECKOUT))} exec {gcu} "$@"'
    )
    for node in cluster.nodes:
        enter = shlex.join(node.enter())
        ctr = shlex.join([str(cluster.programs / "ctr"), "--namespace=k8s.io"])
        _write_script(folder / f"on-{node.name}", f'exec {enter} "${{@:-sh}}"')
        _write_script(folder / f"ctr-{node.name}", f'exec {enter} {ctr} "$@"')
    return folder


def _write_script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/bash\n{line}\n")
    path.chmod(0o755)
