"""What can go wrong between the agent and the kubelet's folders."""

from __future__ import annotations

from dra_driver.model.errors import GcuError


class SocketError(GcuError):
    """The agent cannot make a socket for the kubelet; ``what`` names its path."""


class KubeletError(GcuError):
    """The kubelet does not answer, or its answer or checkpoint cannot be read."""
