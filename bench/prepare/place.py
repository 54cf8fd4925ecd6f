"""Where both plugins are measured: a real control plane, one Node object, allocated claims."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.prepare.caller import Report
from dra_driver.kube.client import Client, connect
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.control_plane.driver import Driver
from tests.control_plane.pod import Pod
from tests.kill.grants import Claims, Grant

NODE: Final = "measured"
_NAMESPACE: Final = "measured"
SLICES: Final = 16  # of each card: 48 held, 64 for the callers, and some to spare
SHARED: Final = tuple(PciAddress.parse(f"0000:{bus:02x}:00.0") for bus in range(0x10, 0x18))
OTHERS: Final = tuple(PciAddress.parse(f"0000:{bus:02x}:00.0") for bus in range(0x20, 0x28))


@dataclass(frozen=True, slots=True)
class Place:
    """`pod` is one with the rights of the agent on NODE; `root` is a folder on a disk."""

    root: Path
    pod: Pod
    claims: Claims
    _serial: Iterator[int]

    def allocate(self, grants: Sequence[Grant]) -> list[ClaimRef]:
        """A claim with each grant."""
        return [self.claims.add(f"claim-{next(self._serial)}", grant) for grant in grants]


@contextmanager
def place(report: Report) -> Iterator[Place]:
    """Everything is gone afterwards. Needs root."""
    cluster = Cluster.up(
        Settings("bench-prepare", keep_nodes_ready=True), owner=own_process(), report=report
    )
    try:
        # Not below /tmp, which may be in memory: syncing would cost nothing there.
        with tempfile.TemporaryDirectory(prefix="gcu-", dir="/var/tmp") as folder:
            root = Path(folder)
            driver = Driver.install(cluster)
            cluster.add_node_object(NODE)
            cluster.kubectl("create", "namespace", _NAMESPACE)
            kubeconfig = driver.kubeconfig("agent", root / "kubeconfig", node=NODE)
            client = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1")
            yield _place(root, Pod.of(kubeconfig, root / "pod"), client)
            client.close()
    finally:
        cluster.down()


def _place(root: Path, pod: Pod, client: Client) -> Place:
    return Place(root, pod, Claims(client, _NAMESPACE, NODE), itertools.count())


def slices(of_each: int) -> list[Grant]:
    """One slice, so many times of each shared card; neighbours are on different cards."""
    return [Grant(Mode.SHARED, card, 1) for _ in range(of_each) for card in SHARED]


def whole_cards() -> list[Grant]:
    return [Grant(Mode.WHOLE, card) for card in OTHERS]


def partitions() -> list[Grant]:
    """An instance on each card that is otherwise given whole."""
    return [Grant(Mode.DRS, card, 1) for card in OTHERS]
