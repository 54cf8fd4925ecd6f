"""Prepared claims that the pod of a call may use, too, although the call does not have them.

The kubelet leaves a claim out of a call once it is prepared. So a container may use a claim of the
call together with one that was prepared for another pod. If the pod were read for every call, each
prepare would wait for the API server twice. So it is read only if there can be such a claim:

- The journal has all prepared claims of the pod's namespace.
- Only one pod can use a claim that was created for it from a template.
- Any other claim can be reserved for further pods at any time. It is read with the claims of the
  call, unless there are many. A pod can use both only if both are reserved for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from dra_driver.kube.errors import NotFound
from dra_driver.model.claims.claim import ClaimRef, Object, reserved_for
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger, PreparedClaim

# More than these are not read: the one pod costs less.
_MOST_READ: Final = 3


def others_to_read(ledger: Ledger, refs: Mapping[str, ClaimRef]) -> dict[str, ClaimRef]:
    """The claims to read with those of a call, by UID; none if the pod is read anyway."""
    if len(refs) != 1:
        return {}
    shareable = (ref for ref, held in _others(ledger, refs) if not _only_pod(held))
    read = {ref.uid: ref for ref in islice(shareable, _MOST_READ + 1)}
    return read if len(read) <= _MOST_READ else {}


def may_use_others(
    ledger: Ledger,
    refs: Mapping[str, ClaimRef],
    claim: Object,
    others: Mapping[str, Object | GcuError],
) -> bool:
    """Whether a pod that uses `claim`, the only one of a call, may use another prepared one.

    `others` are those of `others_to_read` as they were read.
    """
    consumers = reserved_for(claim)
    if not consumers:
        return False  # the kubelet starts no container for a claim that is reserved for nobody
    return any(
        _may_meet(consumers, _only_pod(held), others.get(ref.uid))
        for ref, held in _others(ledger, refs)
    )


def _others(
    ledger: Ledger, refs: Mapping[str, ClaimRef]
) -> Iterable[tuple[ClaimRef, PreparedClaim]]:
    namespaces = {ref.namespace for ref in refs.values()}
    for uid, held in ledger.claims.items():
        ref = held.owner
        if (
            not isinstance(ref, ClaimRef)
            or held.state is not ClaimState.PREPARE_COMPLETED
            or uid in refs
        ):
            continue
        if ref.namespace in namespaces:
            yield ref, held


def _only_pod(held: PreparedClaim) -> str:
    return next((device.made_for for device in held.devices if device.made_for), "")


def _may_meet(
    consumers: Iterable[Mapping[str, Any]], only_pod: str, other: Object | GcuError | None
) -> bool:
    uids = {entry["uid"] for entry in consumers}
    if only_pod:
        return only_pod in uids or not _are_pods(consumers)
    if isinstance(other, NotFound):
        return False  # no pod can start with a deleted claim
    if other is None or isinstance(other, GcuError):
        return True
    theirs = reserved_for(other)
    if not (_are_pods(consumers) and _are_pods(theirs)):
        return True  # which pods another consumer stands for is unknown
    return not uids.isdisjoint(entry["uid"] for entry in theirs)


def _are_pods(consumers: Iterable[Mapping[str, Any]]) -> bool:
    return all(e.get("resource") == "pods" and not e.get("apiGroup") for e in consumers)
