"""Usage sets: what of ours one container uses, and the rules that keep its variables whole.

CDI merges a container's environment by name and the last device wins, so each CDI device of a
container must carry the variables of all of that container's devices. That is possible only
while the sets that a pod's containers use are pairwise equal or disjoint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode


class Use(msgspec.Struct, frozen=True, order=True):
    """One request of one claim; `claim` is the claim's UID."""

    claim: str
    request: str


UsageSet = frozenset[Use]


def may_be_together(modes: Collection[str]) -> bool:
    """Whether one container may have devices of these modes together. The variable
    ``TOPS_VISIBLE_DEVICES`` is known to name one DRS instance only, so beside an instance there is
    no other device."""
    return len(modes) < 2 or Mode.DRS not in modes


def usage_sets(
    pod: Mapping[str, Any],
    claims: Mapping[str, str],
    requests: Mapping[str, frozenset[str]],
) -> dict[Use, UsageSet]:
    """For each use of ours in `pod`, all that the containers which have it use.

    `claims` maps a name in ``spec.resourceClaims`` to the claim's UID, `requests` a UID to the
    names of its requests that this driver serves (claims of others are left out of both).
    A request that no container names stands alone. Raises Refused where two containers'
    sets overlap without being equal.
    """
    found: dict[Use, UsageSet] = {}
    first: dict[UsageSet, str] = {}  # the container that has the set
    for name, used in used_by_containers(pod, claims, requests):
        if used in first:
            continue
        # A pod may have thousands of containers: no two of them are compared.
        shared = next((found[use] for use in used if use in found), None)
        if shared is not None:
            raise Refused(
                f"containers {first[shared]!r} and {name!r} of pod "
                f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']} share some "
                "GCU requests but not all, and a container's variables can name only one set",
                remedy="let both containers use the same requests, or none in common",
            )
        first[used] = name
        found |= dict.fromkeys(used, used)
    alone = {
        Use(uid, request): frozenset({Use(uid, request)})
        for uid, served in requests.items()
        for request in served
    }
    return alone | found


def used_by_containers(
    pod: Mapping[str, Any],
    claims: Mapping[str, str],
    requests: Mapping[str, frozenset[str]],
) -> Iterator[tuple[str, UsageSet]]:
    """The containers that use anything of ours, each with all that it uses."""
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        used: set[Use] = set()
        for entry in (container.get("resources") or {}).get("claims") or ():
            uid = claims.get(entry["name"])
            if uid is None:
                continue
            served = requests.get(uid, frozenset())
            wanted = {entry["request"]} & served if entry.get("request") else served
            used |= {Use(uid, request) for request in wanted}
        if used:
            yield container["name"], frozenset(used)
