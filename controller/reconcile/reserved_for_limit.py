"""A claim that more pods share than the API allows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.cache import pods
from dra_driver.model.claim import ClaimRef, Object, reserved_for

MOST_USERS: Final = 256  # resource.k8s.io/v1, ResourceClaimReservedForMaxSize


def crowded_out(pod: Object, claims: Iterable[Object]) -> str | None:
    """What to tell people where one of the pod's claims has no room for the pod; None where all
    have. kube-scheduler tries such a pod again and again, and binds it when there is room."""
    for claim in claims:
        users = reserved_for(claim)
        if len(users) >= MOST_USERS and all(each.get("uid") != pods.uid_of(pod) for each in users):
            return (
                f"claim {ClaimRef.of(claim)} is in use by {len(users)} pods, and the API allows no "
                "more: this one waits until one of them ends"
            )
    return None
