"""The settings of ``gcu-dra-uninstall-check``, ``…-cleanup`` and ``…-sweep``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from dra_driver.config.loader import Settings


class _ApiSettings(Settings):
    """Of both programs that talk to the API server."""

    kubeconfig: Path | None = Field(
        default=None, description="kubeconfig file; in a pod its service account is used"
    )
    release_namespace: str = Field(min_length=1, description="namespace of the Helm release")


class CleanupSettings(_ApiSettings):
    """What the cleanup can be told."""

    sweep: str = Field(min_length=1, description="name of the DaemonSet that clears up the nodes")
    patience: float = Field(
        default=150.0, ge=0, description="seconds to wait for the answers of all nodes"
    )


class SweepSettings(Settings):
    """What the program on each node can be told."""

    kubelet_root: Path = Field(
        default=Path("/var/lib/kubelet"), description="the kubelet's root directory"
    )
    cdi_dir: Path = Field(
        default=Path("/var/run/cdi"), description="where the container runtime reads CDI specs"
    )
    patience: float = Field(
        default=90.0, ge=0, description="seconds to wait for the node's agent to end"
    )
    answer: Path = Field(
        default=Path("/dev/termination-log"),
        description="file for what came of it, which the kubelet hands on",
    )


class CheckSettings(_ApiSettings):
    """What the check can be told."""

    release: str = Field(min_length=1, description="name of the Helm release")
    revision: int = Field(ge=1, description="the release's revision")
    by_limits: bool = Field(
        default=False, description="pods get GCUs by limits: ask what the Nodes tell of their cards"
    )
