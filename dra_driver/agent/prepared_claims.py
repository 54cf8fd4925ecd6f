"""What the kubelet and the API server say of the claims that this node has prepared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.ports import ObjectReader


def unlisted(ledger: Ledger, containers: Iterable[ContainerResources]) -> list[ClaimRef]:
    """The claims of the journal that no container of the kubelet's list is sure to use. The kubelet
    lists names: of two prepared claims of one name it has one, and only the API server can tell
    which."""
    refs = [held.owner for held in ledger.claims.values() if isinstance(held.owner, ClaimRef)]
    if not refs:
        return []
    listed = {(each.namespace, claim) for each in containers for claim in each.claims}
    names = Counter((ref.namespace, ref.name) for ref in refs)
    return [
        ref
        for ref in refs
        if (ref.namespace, ref.name) not in listed or names[ref.namespace, ref.name] > 1
    ]


def current(api: ObjectReader, ref: ClaimRef) -> Object | None:
    """The claim as the API server has it, None if that has it no more. Raises KubeError."""
    try:
        claim = api.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
    except NotFound:
        return None
    return claim if claim["metadata"]["uid"] == ref.uid else None
