"""What can go wrong between us and the API server.

::

    KubeError                the answer was an error: `status` (HTTP) and `reason` (of the Status)
    ├── NotFound             404
    ├── Conflict             409: the object changed since it was read
    ├── AlreadyExists        409 with the reason AlreadyExists, on create
    ├── Forbidden            403: our RBAC does not allow it, or an admission policy refused
    ├── Gone                 410: the resourceVersion or continue token is too old; list again
    ├── Invalid              422: validation refused the object
    ├── TooManyRequests      429: `retry_after` seconds
    └── Unavailable          no answer, a timeout, or 5xx: the same call may succeed later
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dra_driver.model.errors import GcuError


class KubeError(GcuError):
    """The API server refused. `status` is 0 where there was no answer at all."""

    def __init__(self, what: str, *, status: int = 0, reason: str = "", remedy: str = "") -> None:
        super().__init__(what, remedy=remedy)
        self.status = status
        self.reason = reason


class NotFound(KubeError):
    """The object, or the kind itself, does not exist."""


class Conflict(KubeError):
    """The object was changed by someone else since it was read: read it again, then decide."""


class AlreadyExists(KubeError):
    """An object of that name exists already."""


class Forbidden(KubeError):
    """The server knows who asks and does not allow it."""


class Gone(KubeError):
    """The resourceVersion asked for is no longer kept: list anew."""


class Invalid(KubeError):
    """The server's validation refused the object; repeating the same call is pointless."""


class TooManyRequests(KubeError):
    """The server asks to come back later, after `retry_after` seconds."""

    def __init__(
        self, what: str, *, status: int = 429, reason: str = "", retry_after: float = 1.0
    ) -> None:
        super().__init__(what, status=status, reason=reason)
        self.retry_after = retry_after


class Unavailable(KubeError):
    """The server could not be reached, did not answer in time, or failed itself (5xx)."""


_LONGEST_WAIT: Final = 60.0  # seconds; what is in between must not send us to sleep for good

_BY_STATUS: dict[int, type[KubeError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def from_response(
    call: str, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> KubeError:
    """The error for an answer of 400 and above to `call` (such as ``PUT /api/v1/…``).

    `body` is a ``Status`` object as JSON, or whatever a proxy in between wrote; the names of
    `headers` are in lower case.
    """
    details = _status_object(body)
    message = details.get("message") or body[:200].decode(errors="replace") or "no message"
    reason = str(details.get("reason") or "")
    what = f"the API server answered {status} {reason} to {call}: {message}"
    if status == 429:
        return TooManyRequests(what, reason=reason, retry_after=_retry_after(headers or {}))
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists(what, status=status, reason=reason)
    if reason == "Expired":
        return Gone(what, status=status, reason=reason)
    if status >= 500:
        return Unavailable(what, status=status, reason=reason)
    return _BY_STATUS.get(status, KubeError)(what, status=status, reason=reason)


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return min(max(0.0, float(headers.get("retry-after", "1"))), _LONGEST_WAIT)
    except ValueError:  # the header may also be a date, which API servers do not send
        return 1.0
