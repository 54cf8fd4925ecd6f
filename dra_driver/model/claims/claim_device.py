"""What prepare hands back: the devices that a container runtime must add for a claim."""

from __future__ import annotations

import msgspec


class ClaimDevice(msgspec.Struct, frozen=True):
    """One allocated device of a prepared claim.

    ``request`` is the request's main name, without a subrequest: the kubelet compares it with a
    container's ``resources.claims[].request`` as a whole string (1.36.3, ``cdiDevicesAsList``).
    ``cdi_ids`` are fully qualified; the first is the device's own. ``share_id`` is None unless
    the device allows several allocations.
    """

    request: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str | None = None


Prepared = tuple[ClaimDevice, ...]
"""What a prepared claim has."""
