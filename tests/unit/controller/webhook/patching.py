"""Applies what the webhook answers, as an API server does (RFC 6902)."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from controller.webhook.review import Operation
from dra_driver.model.claims.claim import Object


def patched(obj: Object, patch: Sequence[Operation]) -> Object:
    """A copy of the object with the patch."""
    found = copy.deepcopy(obj)
    for each in patch:
        *path, last = [
            part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]
        ]
        holder: Any = found
        for part in path:
            holder = holder[int(part) if isinstance(holder, list) else part]
        match each["op"]:
            case "remove":
                del holder[last]
            case "replace":
                assert last in holder
                holder[last] = each["value"]
            case "add" if isinstance(holder, list):
                assert last == "-"
                holder.append(each["value"])
            case "add":
                holder[last] = each["value"]
    return found


def review(obj: Object) -> bytes:
    """The call of an API server."""
    request = {"uid": "review-1", "object": obj, "operation": "CREATE"}
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole).encode()


def admitted(answer: Callable[[bytes], bytes], obj: Object) -> Object:
    """The object as the server stores it after the call. Asserts that it is admitted."""
    response = json.loads(answer(review(obj)))["response"]
    assert response["uid"] == "review-1"
    assert response["allowed"], response
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    return patched(obj, patch)
