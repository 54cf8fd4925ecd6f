"""Answers of the API server, and which error each becomes."""

from __future__ import annotations

import json

import pytest

from dra_driver.kube import errors


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.KubeError),
        (401, "Unauthorized", errors.KubeError),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Gone),
        (400, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
    ],
)
def test_kind(status: int, reason: str, kind: type[errors.KubeError]) -> None:
    body = json.dumps({"kind": "Status", "message": "so it is", "reason": reason}).encode()
    error = errors.from_response("PUT /api/v1/x", status, body)
    assert type(error) is kind
    assert (error.status, error.reason) == (status, reason)
    assert error.what == f"the API server answered {status} {reason} to PUT /api/v1/x: so it is"


def test_what_etcd_finds_too_large_is_refused_for_good() -> None:
    """The API server calls it a failure of its own (1.36.3)."""
    body = json.dumps({"code": 500, "message": "etcdserver: request is too large"}).encode()
    assert isinstance(errors.from_response("PUT /", 500, body), errors.Invalid)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"\xff\xfe", b"[" * 100_000], ids=lambda body: repr(body[:9])
)
def test_a_proxy_may_answer_anything(body: bytes) -> None:
    assert isinstance(errors.from_response("GET /", 502, body), errors.Unavailable)


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, {}, 1.0),
        (429, {"retry-after": "7"}, 7.0),
        (429, {"retry-after": "Sat"}, 1.0),
        (429, {"retry-after": "-1"}, 0.0),
        (429, {"retry-after": "nan"}, 0.0),
        (429, {"retry-after": "inf"}, 60.0),
        (503, {}, 1.0),
        (503, {"retry-after": "5"}, 5.0),
        (500, {"retry-after": "2"}, 2.0),
        (500, {}, None),
        (404, {"retry-after": "2"}, None),
    ],
)
def test_what_the_server_wants_to_see_again(
    status: int, header: dict[str, str], seconds: float | None
) -> None:
    assert errors.from_response("GET /", status, b"{}", header).retry_after == seconds
