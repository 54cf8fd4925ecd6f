"""A process that sees a node's directories as the agent's container does.

`unshare --mount --propagation private PYTHON -m tests.chart.vendor_container`, with the order as
JSON in the first line of its input: `node`, a directory that takes the place of the node's root;
`mounts`, pairs of a path of the node and a path in the container; `scratch`, an empty directory;
`environ`, the container's variables. Each further line is a question; the answer is one line of
JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import load
from dra_driver.hardware.efsmi.runner import Efsmi
from dra_driver.hardware.vendor_files import VendorMounts
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def overlay(folder: Path, scratch: Path) -> None:
    """Let mount points be made below `folder`, without a trace outside of this namespace."""
    scratch.mkdir()
    mount("-t", "tmpfs", "tmpfs", scratch)
    upper, work = scratch / "upper", scratch / "work"
    upper.mkdir()
    work.mkdir()
    options = f"lowerdir={folder},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "overlay", "-o", options, folder)


def main() -> None:
    order = json.loads(sys.stdin.readline())
    overlay(Path("/usr"), Path(order["scratch"]) / "usr")
    for source, point in order["mounts"]:
        Path(point).mkdir(parents=True, exist_ok=True)
        mount("--bind", Path(order["node"]) / source.lstrip("/"), point)
    settings = load(AgentSettings, [], order["environ"], prog="agent", description="")
    tool, library = Path(settings.efsmi_path), settings.efsmi_library
    efsmi = Efsmi(tool, timeout=60, effects=Effects(), library=library)
    mounts = VendorMounts(tool, library)
    for question in sys.stdin:
        if question.strip() == "problem":
            answer = mounts.problem
        else:
            try:
                answer = efsmi.run().strip()
            except GcuError as error:
                answer = str(error)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
