"""What all parts of one cluster share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.addresses import Addresses
from tests.cluster.processes import ProcessTable
from tests.cluster.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """The settings of a cluster, and where its things are."""

    settings: Settings
    addresses: Addresses
    directory: Path
    """The run directory."""
    programs: Path
    """The folder of the cluster's programs."""
    processes: ProcessTable

    @property
    def pki(self) -> Path:
        """The folder of keys, certificates and the components' kubeconfigs."""
        return self.directory / "pki"
