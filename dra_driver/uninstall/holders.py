"""The claims with devices of this driver, and the pods that use them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dra_driver.model.claims.claim import ClaimRef, reserved_for, results
from dra_driver.model.names import DRIVER


class AllocatedClaim(msgspec.Struct, frozen=True, order=True):
    """A claim with `devices` devices of this driver, from `pools`.

    `consumers` are texts such as ``pod default/train-0``; empty if the claim is not reserved.
    """

    claim: ClaimRef
    devices: int
    pools: tuple[str, ...]
    consumers: tuple[str, ...]

    def __str__(self) -> str:
        devices = f"{self.devices} device{'s' if self.devices > 1 else ''}"
        nodes = ", ".join(pool.removeprefix(f"{DRIVER}/") for pool in self.pools)
        return f"claim {self.claim}: {devices} of {nodes}, {_used(self.consumers)}"


def holders(claims: Iterable[Mapping[str, Any]]) -> list[AllocatedClaim]:
    """The holders among ResourceClaims (resource.k8s.io/v1), by namespace and name.

    A prepared claim is an allocated one, except for a moment after its pod was deleted by force.
    """
    found = []
    for claim in claims:
        given = results(claim)
        if given:
            ref = ClaimRef.of(claim)
            pools = tuple(sorted({result.pool for result in given}))
            consumers = tuple(
                f"{entry['resource'].removesuffix('s')} {ref.namespace}/{entry['name']}"
                for entry in reserved_for(claim)
            )
            found.append(AllocatedClaim(ref, len(given), pools, consumers))
    return sorted(found)


def _used(consumers: Sequence[str]) -> str:
    return f"used by {', '.join(consumers)}" if consumers else "used by no pod yet"
