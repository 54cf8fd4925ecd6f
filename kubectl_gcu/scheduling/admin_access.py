"""Requests with administrative access, as kube-scheduler serves them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.allocator.ownership import forms
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_ADMIN, CLASS_WHOLE

NEEDS_FREE_CARD: Final = (
    "kube-scheduler gives administrative access to free cards alone (kubernetes#140729), except by "
    f"the DeviceClass {CLASS_ADMIN}, which new claims for {CLASS_WHOLE} get"
)


def needs_free_card(claims: Mapping[str, Object]) -> bool:
    """Whether any request of the claims asks for administrative access by another class than that
    of devices which consume no counter."""
    return any(
        form.get("adminAccess") and form.get("deviceClassName") != CLASS_ADMIN
        for claim in claims.values()
        for _, form in forms(claim["spec"].get("devices") or {})
    )
