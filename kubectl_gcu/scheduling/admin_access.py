"""Requests with administrative access, as kube-scheduler serves them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_driver.model.claims.claim import Object

NEEDS_FREE_CARD: Final = (
    "kube-scheduler gives administrative access to free cards alone (kubernetes#140729)"
)


def has_admin_access(claims: Mapping[str, Object]) -> bool:
    """Whether any request of the claims asks for administrative access."""
    return any(form.get("adminAccess") for claim in claims.values() for form in _forms(claim))


def _forms(claim: Object) -> Iterator[dict[str, Any]]:
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        yield from filter(None, (request.get("exactly"), *(request.get("firstAvailable") or ())))
