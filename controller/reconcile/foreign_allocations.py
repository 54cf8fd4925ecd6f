"""Allocations of our devices that another allocator wrote past us. Pure.

kube-scheduler is kept away by a taint, which somebody's own class or claim may tolerate. Such an
allocation counts as used like any other; people are told, because two allocators that do not know
of each other can give one card twice.
"""

from __future__ import annotations

from controller.reconcile.field_manager import allocated_by_us, writer_of_allocation
from dra_driver.model.claim import Object, results


def written_past_us(claim: Object) -> str | None:
    """What to tell people about the claim; None where there is nothing to tell."""
    devices = sorted(
        {f"{each.pool}/{each.device}" for each in results(claim) if not each.admin_access}
    )
    if not devices or allocated_by_us(claim):
        return None
    return (
        f"{', '.join(devices)} was allocated by {writer_of_allocation(claim)}, past the controller "
        "of this driver, which counts it as used; it may be allocated twice. Remove whatever "
        "tolerates the taint gcu.enflame.com/allocated-by, and delete the claim"
    )
