"""Whether who asked for something still waits for it.

The kubelet gives a prepare up after 45 s, or when its pod is deleted, and then has the claim
unprepared: during an update by another agent, which does not know that the call is still at work,
waiting for the API server, say. What that call made afterwards nobody would take back.
"""

from __future__ import annotations

from collections.abc import Callable

from dra_driver.model.errors import Refused
from dra_driver.model.owner import Owner

Awaited = Callable[[], bool]
"""Whether the call is waited for, now."""


def always() -> bool:
    """Nobody gives it up."""
    return True


def check_awaited(owner: Owner, awaited: Awaited) -> None:
    """Raises Refused for a call that was given up. Called with the owner's lock held: an unprepare
    that waits for it finds what is made, and one that had it before came after the giving up."""
    if not awaited():
        raise Refused(
            f"nothing is prepared for {owner.title}: the call was given up",
            remedy="the kubelet asks again where it still needs it",
        )
