"""The settings of ``gcu-dra-uninstall-check`` and ``gcu-dra-uninstall-cleanup``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from dra_driver.config.loader import Settings


class CleanupSettings(Settings):
    """What the cleanup can be told."""

    kubeconfig: Path | None = Field(
        default=None, description="kubeconfig file; in a pod its service account is used"
    )


class CheckSettings(CleanupSettings):
    """What the check can be told besides."""

    release: str = Field(min_length=1, description="name of the Helm release")
    release_namespace: str = Field(min_length=1, description="namespace of the Helm release")
    revision: int = Field(ge=1, description="the release's revision")
    by_limits: bool = Field(
        default=False, description="pods get GCUs by limits: ask what the Nodes tell of their cards"
    )
