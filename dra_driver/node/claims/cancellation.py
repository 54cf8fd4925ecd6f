"""Whether the kubelet has given a call up.

The kubelet gives a prepare up after 45 s, or when its pod is deleted, and then has the claim
unprepared. During an update it asks another agent, which does not know that the call still runs,
for example waits for the API server. Nobody would take back what that call makes afterwards.
"""

from __future__ import annotations

from typing import Protocol

from dra_driver.model.claims.owner import Owner
from dra_driver.model.errors import Refused


class IsCancelled(Protocol):
    """Whether the caller has given the call up by now."""

    def __call__(self) -> bool: ...


def never_cancelled() -> bool:
    """For calls of the agent's own."""
    return False


def check_not_cancelled(owner: Owner, is_cancelled: IsCancelled) -> None:
    """Raises Refused for a call that was given up.

    Call it with the owner's lock held: an unprepare that waits for the lock finds what the call
    makes, and one that had the lock before came after the call was given up.
    """
    if is_cancelled():
        raise Refused(
            f"nothing is prepared for {owner.title}: the call was given up",
            remedy="the kubelet asks again where it still needs it",
        )
