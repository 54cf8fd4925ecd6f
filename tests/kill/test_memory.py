"""What a long life does to the agent's memory: many prepares and unprepares, 48 claims held.

`GCU_CYCLES` says how many; ``make soak`` plays a million, of which each 50th of the way is printed.
The agent is the program alone, without the traces of the other tests here, and has the view of its
pod: its own way to the API server, and the chart's variables.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.mode import Mode
from tests.cluster.cluster import Cluster
from tests.control_plane.pod import Pod
from tests.kill.grants import CARDS, Grant
from tests.kill.kubelet import Connection
from tests.kill.node import Node

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

CYCLES: Final = int(os.environ.get("GCU_CYCLES", "400"))
HELD: Final = 48
_SAMPLES: Final = 50
_STEP: Final = max(4, CYCLES // _SAMPLES // 4 * 4)  # half of them in each mode, by two callers
_SLICES: Final = 16
# A trend is told from noise by far more cycles than the quick run has.
# In 20,000 cycles one sample of a moment in which more was in use made 21 KiB a thousand of it.
_LONG: Final = 500_000
_MOST_MIB: Final = 80.0
_MOST_GROWTH: Final = 1.0  # KiB a thousand cycles: a million cost one MiB


@pytest.fixture
def pod(control_plane: Cluster, namespace: str, tmp_path: Path) -> Pod:
    """Of an account that may do everything, and whose token outlives the longest run."""
    scope = ("--namespace", namespace)
    control_plane.kubectl("create", "serviceaccount", "agent", *scope)
    control_plane.kubectl(
        "create",
        "clusterrolebinding",
        f"agent-{namespace}",
        "--clusterrole=cluster-admin",
        f"--serviceaccount={namespace}:agent",
    )
    token = control_plane.kubectl("create", "token", "agent", "--duration=24h", *scope)
    path = tmp_path / "kubeconfig"
    admin = json.loads(control_plane.kubectl("config", "view", "--raw", "--output=json"))
    path.write_text(json.dumps({**admin, "users": [{"user": {"token": token.strip()}}]}))
    return Pod.of(path, tmp_path / "pod")


@contextmanager
def agent(node: Node, pod: Pod) -> Iterator[int]:
    """A process of its own; gives its number."""
    rules = node.root / "cards.json"
    rules.write_text(json.dumps({"sliceCount": _SLICES}))
    argv = node.argv({"card-rules": rules, "log-level": "warning", "kubeconfig": None})
    command = pod.command(sys.executable, "-m", "dra_driver.agent.main", *argv)
    with (node.root / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, env=pod.environment(), stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def resident(pid: int) -> float:
    """MiB of the process."""
    [kibibytes] = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kibibytes) / 1024


def run_cycles(kubelet: Connection, refs: Sequence[ClaimRef], count: int) -> None:
    """For each claim a caller, all of them at once; they share `count` evenly."""

    def call(ref: ClaimRef) -> None:
        for _ in range(count // len(refs)):
            assert kubelet.prepare(ref) == ""
            assert kubelet.unprepare(ref) == ""

    with ThreadPoolExecutor(len(refs)) as callers:
        list(callers.map(call, refs))


def slope(curve: Sequence[tuple[int, float]]) -> float:
    """KiB a thousand cycles, of the second half: at first caches fill."""
    half = curve[len(curve) // 2 :]
    cycles, mebibytes = zip(*half, strict=True)
    return statistics.linear_regression(cycles, mebibytes).slope * 1024 * 1000


@pytest.mark.timeout(6 * 3600)
def test_a_long_life_costs_no_memory(node: Node, pod: Pod, tell: Callable[[str], None]) -> None:
    sliced, free = CARDS[:3], CARDS[3]
    with agent(node, pod) as pid, node.kubelet.connection() as kubelet:
        for at in range(HELD):
            assert kubelet.prepare(node.add(Grant(Mode.SHARED, sliced[at % 3], 1))) == ""
        # The two modes that cost no call of efsmi; only of slices there can be two at a time.
        whole = [node.add(Grant(Mode.WHOLE, free))]
        slices = [node.add(Grant(Mode.SHARED, free, amount)) for amount in (2, 3)]
        run_cycles(kubelet, slices, 100)
        curve, start = [(0, resident(pid))], time.monotonic()
        tell(f"{HELD} claims held: {curve[0][1]:.1f} MiB")
        for done in range(_STEP, CYCLES + 1, _STEP):
            for refs in (whole, slices):
                run_cycles(kubelet, refs, _STEP // 2)
            curve.append((done, resident(pid)))
            tell(f"{done:>9} cycles: {curve[-1][1]:.2f} MiB, {time.monotonic() - start:.0f} s")
    growth = slope(curve)
    tell(f"{growth:+.2f} KiB a thousand cycles")
    assert curve[-1][1] < _MOST_MIB
    if CYCLES >= _LONG:
        assert growth < _MOST_GROWTH
