"""Who may read the page: the browser that was given the address, and no page of another site."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

_BYTES: Final = 32
_SITES: Final = frozenset({"", "none", "same-origin"})


class Access:
    """The address has a token that is good for one visit; who shows it gets a cookie. Browsers send
    cookies to all ports of a host, so the cookie's name has the port.

    The Host header has to name this machine: a site whose name was pointed at 127.0.0.1 (DNS
    rebinding) shows its own name there. Requests that a page of another site makes are refused.
    """

    def __init__(self, port: int) -> None:
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._name = f"kubectl-gcu-view-{port}"
        self._session = secrets.token_urlsafe(_BYTES)
        self.token = secrets.token_urlsafe(_BYTES)
        self._is_used = False

    def is_own_page(self, headers: Mapping[str, str]) -> bool:
        """Whether the request is for this host, and from its own page or from nobody's."""
        if headers.get("Host", "").lower() not in self._hosts:
            return False
        origin = headers.get("Origin")
        return origin is None or origin in self._origins

    def is_same_site(self, headers: Mapping[str, str]) -> bool:
        """Whether no page of another site caused the request. A link to the address itself may be
        anywhere."""
        return headers.get("Sec-Fetch-Site", "") in _SITES

    def has_session(self, headers: Mapping[str, str]) -> bool:
        """Whether the request has the cookie."""
        try:
            cookie = SimpleCookie(headers.get("Cookie", "")).get(self._name)
        except CookieError:
            return False
        return cookie is not None and _equal(cookie.value, self._session)

    def redeem(self, token: str) -> str:
        """The value of ``Set-Cookie`` for who shows the token for the first time; else empty."""
        if self._is_used or not _equal(token, self.token):
            return ""
        self._is_used = True
        return f"{self._name}={self._session}; Path=/; HttpOnly; SameSite=Strict"


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
