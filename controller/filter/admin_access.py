"""Administrative access: to whole cards only, whatever else is held of them. Pure.

It is for tools that watch or repair a card that others use. A share or a DRS instance is something
that a claim has for itself, so there is nothing of it to look at beside its holder. Who may ask for
it is the API server's to check (the namespace's label ``resource.kubernetes.io/admin-access``); the
node refuses the same as the last resort (`dra_driver.node.plan`).
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.allocate import Allocation
from controller.allocator.claim_request import ClaimRequest
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_TYPE, CLASS_DRS, CLASS_SHARED, CLASS_WHOLE

_NOT_WHOLE = {CLASS_SHARED: Mode.SHARED, CLASS_DRS: Mode.DRS}


def check_asked(wanted: Sequence[ClaimRequest]) -> None:
    """Raises Refused where a request can only be served with what administrative access is not
    for."""
    for each in wanted:
        for request in each.requests:
            for exact in request.alternatives:
                mode = _NOT_WHOLE.get(exact.class_name)
                if exact.demand.admin_access and mode is not None:
                    raise _refused(each, exact.name, f"{exact.class_name} has {mode} devices")


def check_granted(wanted: Sequence[ClaimRequest], granted: Allocation) -> None:
    """Raises Refused where somebody's own class led to such a device."""
    for each, grants in zip(wanted, granted.grants, strict=True):
        for grant in grants:
            mode = grant.device.text(ATTR_TYPE)
            if grant.request.demand.admin_access and mode in _NOT_WHOLE.values():
                device = f"{grant.device.id.name} of node {granted.node} is a {mode} device"
                raise _refused(each, grant.request.name, device)


def _refused(wanted: ClaimRequest, request: str, why: str) -> Refused:
    return Refused(
        f"claim {wanted.ref}, request {request}: adminAccess is for whole cards, and {why}",
        remedy=f"request the DeviceClass {CLASS_WHOLE}, or drop adminAccess",
    )
