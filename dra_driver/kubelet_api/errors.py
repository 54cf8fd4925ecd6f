"""What can go wrong between the agent and the kubelet's folders."""

from __future__ import annotations

from dra_driver.model.errors import GcuError


class SocketError(GcuError):
    """A socket that the kubelet shall find cannot be made; ``what`` names its path."""


class KubeletError(GcuError):
    """The kubelet does not answer, or answers or wrote what we cannot read."""
