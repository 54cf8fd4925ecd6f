"""The errors of calls to the API server: a class for each answer that callers tell from others.

::

    KubeError
    ├── NotFound
    ├── Conflict
    ├── AlreadyExists
    ├── Forbidden
    ├── Gone
    ├── Invalid
    ├── TooManyRequests
    └── Unavailable
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dra_driver.model.errors import GcuError


class KubeError(GcuError):
    """The API server answered with an error: `status` (HTTP; 0 if there was no answer) and `reason`
    (of the Status). `retry_after` is the number of seconds after which the server accepts the
    request again; None if it did not say so."""

    def __init__(
        self,
        what: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class NotFound(KubeError):
    """404: the object, or the kind itself, does not exist."""


class Conflict(KubeError):
    """409: the object was changed since it was read: read it again, then decide."""


class AlreadyExists(KubeError):
    """409 with the reason AlreadyExists, on create."""


class Forbidden(KubeError):
    """403: the RBAC rules do not allow it, or an admission policy refused."""


class Gone(KubeError):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(KubeError):
    """422: validation refused the object; 413: it is too large to be stored. Repeating the call is
    pointless."""


class TooManyRequests(KubeError):
    """429: the server asks to come back later."""

    retry_after: float

    def __init__(
        self, what: str, *, status: int = 429, reason: str = "", retry_after: float = 1.0
    ) -> None:
        super().__init__(what, status=status, reason=reason, retry_after=retry_after)


class Unavailable(KubeError):
    """No answer, a timeout, or 5xx: the same call may succeed later."""


def concerns_all(error: KubeError) -> bool:
    """Whether the next write would fail, too, whatever it writes: the server is away or busy. A
    webhook that does not answer fails only what it is for, with 500, or is not answered before our
    own limit."""
    is_away = isinstance(error, Unavailable) and error.status != 500
    return is_away or isinstance(error, TooManyRequests)


_LONGEST_WAIT: Final = 60.0  # seconds; a wrong header must not stop a program
_USUAL_WAIT: Final = 1.0  # seconds, without the header; API servers send the same

_BY_REASON: Final[Mapping[str, type[KubeError]]] = {"AlreadyExists": AlreadyExists, "Expired": Gone}
_BY_STATUS: Final[Mapping[int, type[KubeError]]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    422: Invalid,
    429: TooManyRequests,
}
# etcd's message, which the server returns with status 500 (1.36.3). The object stays too large
# until its author changes it.
_TOO_LARGE: Final = "etcdserver: request is too large"


def from_response(
    call: str, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> KubeError:
    """The error for an answer of 400 and above to `call` (such as ``PUT /api/v1/…``).

    `body` is a ``Status`` object as JSON, or the text of a proxy in between; the names of
    `headers` are in lower case.
    """
    details = _status_object(body)
    message = details.get("message") or body[:200].decode(errors="replace") or "no message"
    reason = str(details.get("reason") or "")
    what = f"the API server answered {status} {reason} to {call}: {message}"
    if status >= 500 and _TOO_LARGE in message:
        status = 413
    of_status = _BY_STATUS.get(status, Unavailable if status >= 500 else KubeError)
    return _BY_REASON.get(reason, of_status)(
        what, status=status, reason=reason, retry_after=_retry_after(status, headers or {})
    )


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Only of statuses at which the request should be sent again."""
    if status != 429 and status < 500:
        return None
    text = headers.get("retry-after")
    if text is None:
        return _USUAL_WAIT if status in {429, 503} else None
    try:
        return min(max(0.0, float(text)), _LONGEST_WAIT)
    except ValueError:  # the header may also be a date, which API servers do not send
        return _USUAL_WAIT


def no_answer(call: str, error: Exception) -> Unavailable:
    """The error of a request that ended in `error` and not in an answer."""
    return Unavailable(f"the API server did not answer {call}: {error}")
