"""AdmissionReview (admission.k8s.io/v1), from bytes to values and back. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from dra_driver.kube.decode import decode
from dra_driver.kube.encode import encode
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue

Operation = Mapping[str, Any]
"""One operation of a JSON patch (RFC 6902)."""

_API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


@dataclass(frozen=True, slots=True)
class Review:
    """A request to admit `obj`, which has the defaults of its API, and fields that the server will
    drop before it stores the object: admission comes before that (1.34.4, `createHandler`,
    `PrepareForCreate`). `stored` is the object before an update; None for a new one."""

    uid: str
    obj: Object
    stored: Object | None = None


def parse_review(body: bytes) -> Review:
    """Raises InvalidValue for what no API server sends."""
    try:
        raw = decode(body)
    except ValueError as error:
        raise InvalidValue(f"the body of the call is not JSON: {error}") from error
    request = raw.get("request") if isinstance(raw, dict) else None
    if not isinstance(request, dict) or raw.get("apiVersion") != _API_VERSION:
        raise InvalidValue(f"the body of the call is not a {_KIND} of {_API_VERSION}")
    uid, obj = request.get("uid"), request.get("object")
    if not isinstance(uid, str) or not isinstance(obj, dict):
        raise InvalidValue(f"the {_KIND} has no uid or no object")
    return Review(uid, obj, request.get("oldObject"))


def render_allowed(uid: str, patch: Sequence[Operation]) -> bytes:
    """The object is admitted with the patch."""
    response: Object = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode(list(patch))).decode()
    return _render(response)


def render_denied(uid: str, message: str, status: HTTPStatus) -> bytes:
    """The object is not admitted; its author reads the message."""
    return _render(
        {"uid": uid, "allowed": False, "status": {"message": message, "code": status.value}}
    )


def _render(response: Object) -> bytes:
    return encode({"apiVersion": _API_VERSION, "kind": _KIND, "response": response})
