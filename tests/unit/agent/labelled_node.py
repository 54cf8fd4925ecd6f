"""An API server that has one Node, and tells its labels unless it is away."""

from __future__ import annotations

from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object


class LabelledNode:
    """Plays `Api`. A Node without labels has no such field."""

    def __init__(self, **labels: str) -> None:
        self.labels = labels
        self.away = False
        self.gets = 0

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self.gets += 1
        if self.away:
            raise Unavailable(f"the API server did not answer GET {resource.plural} {name}")
        metadata: Object = {"name": name}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        return {"metadata": metadata}
