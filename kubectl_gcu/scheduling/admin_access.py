"""Requests with administrative access, as kube-scheduler serves them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

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
        for form in _forms(claim)
    )


def _forms(claim: Object) -> Iterator[dict[str, Any]]:
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        yield from filter(None, (request.get("exactly"), *(request.get("firstAvailable") or ())))
